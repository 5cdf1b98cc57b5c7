#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

namespace berth::core {

// One provider resource. It may outlive the lease that it was created for and the environment that
// described it, so this row holds everything that teardown needs.
struct Sandbox {
  SandboxId id;  // also the key given to the provider, so that a retry finds it
  CompanyId company_id;
  std::optional<EnvironmentId> environment_id = {};
  std::optional<AgentId> agent_id = {};
  std::optional<WorkspaceId> execution_workspace_id = {};
  std::optional<LeaseId> lease_id = {};  // the lease that holds it now
  std::optional<NodeId> node_id = {};    // the server whose keeper or worker holds it
  std::string provider = {};
  std::optional<PluginId> plugin_id = {};
  std::optional<std::string> plugin_version = {};
  bj::object config = {};                             // as acquired: secret ids, never values
  std::optional<std::string> provider_lease_id = {};  // absent until the provider has responded
  std::string fingerprint = {};                       // reuse requires the same one
  SandboxState status = SandboxState::creating;
  bj::object metadata = {};  // from the provider: remoteCwd, shellCommand, ...
  std::optional<std::string> failure_reason = {};
  std::int64_t attempts = 0;                 // teardown attempts
  std::optional<Time> next_attempt_at = {};  // absent: now
  std::optional<Time> parked_at = {};        // the sweeper gave up; an operator must decide
  std::optional<Time> expires_at = {};
  Time last_used_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Sandbox, (),
                      (id, company_id, environment_id, agent_id, execution_workspace_id, lease_id,
                       node_id, provider, plugin_id, plugin_version, config, provider_lease_id,
                       fingerprint, status, metadata, failure_reason, attempts, next_attempt_at,
                       parked_at, expires_at, last_used_at, created_at, updated_at))

}  // namespace berth::core
