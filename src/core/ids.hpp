#pragma once

#include "base/id.hpp"

namespace berth::core {

// clang-format off
struct CompanyTag     { static constexpr auto noun = "company"; };
struct AgentTag       { static constexpr auto noun = "agent"; };
struct EnvironmentTag { static constexpr auto noun = "environment"; };
struct LeaseTag       { static constexpr auto noun = "lease"; };
struct SandboxTag     { static constexpr auto noun = "sandbox"; };
struct RunTag         { static constexpr auto noun = "run"; };
struct SecretTag      { static constexpr auto noun = "secret"; };
struct VersionTag     { static constexpr auto noun = "secret version"; };
struct BindingTag     { static constexpr auto noun = "secret binding"; };
struct EventTag       { static constexpr auto noun = "event"; };
struct TokenTag       { static constexpr auto noun = "token"; };
struct WorkspaceTag   { static constexpr auto noun = "workspace"; };
struct IssueTag       { static constexpr auto noun = "issue"; };
struct NodeTag        { static constexpr auto noun = "node"; };
struct PluginTag      { static constexpr auto noun = "plugin"; };
struct TemplateTag    { static constexpr auto noun = "template"; };
struct SetupTag       { static constexpr auto noun = "setup session"; };
// clang-format on

using CompanyId = Id<CompanyTag>;
using AgentId = Id<AgentTag>;
using EnvironmentId = Id<EnvironmentTag>;
using LeaseId = Id<LeaseTag>;
using SandboxId = Id<SandboxTag>;
using RunId = Id<RunTag>;
using SecretId = Id<SecretTag>;
using SecretVersionId = Id<VersionTag>;
using BindingId = Id<BindingTag>;
using EventId = Id<EventTag>;
using TokenId = Id<TokenTag>;
using WorkspaceId = Id<WorkspaceTag>;
using IssueId = Id<IssueTag>;
using NodeId = Id<NodeTag>;
using PluginId = Id<PluginTag>;
using TemplateId = Id<TemplateTag>;
using SetupSessionId = Id<SetupTag>;

}  // namespace berth::core
