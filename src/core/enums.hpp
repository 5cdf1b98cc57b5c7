#pragma once

#include "base/names.hpp"

// The closed sets of the domain, each enumerator in its wire spelling.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(DriverKind, local, ssh, sandbox, plugin)
BOOST_DEFINE_ENUM_CLASS(EnvironmentStatus, active, archived)
BOOST_DEFINE_ENUM_CLASS(LeasePolicy, ephemeral, reuse_by_environment, reuse_by_execution_workspace,
                        retain_on_failure)
BOOST_DEFINE_ENUM_CLASS(CleanupStatus, pending, success, failed)
BOOST_DEFINE_ENUM_CLASS(CompanyStatus, active, archived)
BOOST_DEFINE_ENUM_CLASS(AgentStatus, active, paused, idle, running, error, pending_approval,
                        terminated)
BOOST_DEFINE_ENUM_CLASS(AdapterType, process, claude_local, codex_local)

BOOST_DEFINE_ENUM_CLASS(SecretProvider, local_encrypted, aws_secrets_manager, gcp_secret_manager,
                        vault)
BOOST_DEFINE_ENUM_CLASS(SecretStatus, active, disabled, archived, deleted)
BOOST_DEFINE_ENUM_CLASS(SecretScope, company, user)
BOOST_DEFINE_ENUM_CLASS(SecretManagedMode, paperclip_managed, external_reference)
BOOST_DEFINE_ENUM_CLASS(SecretVersionStatus, current, previous, disabled, destroyed, failed)
// What a secret may be bound to. An access event may also name the two readers that need no binding
// row.
BOOST_DEFINE_ENUM_CLASS(SecretTarget, agent, project, environment, routine, plugin, issue, run,
                        tool_connection, system)
BOOST_DEFINE_ENUM_CLASS(SecretConsumer, agent, project, environment, routine, plugin, issue, run,
                        tool_connection, system, agent_api, plugin_worker)
BOOST_DEFINE_ENUM_CLASS(SecretAccessOutcome, success, failure, missing, inactive, not_allowed,
                        optional_omitted, provider_error)
BOOST_DEFINE_ENUM_CLASS(SecretProjection, unclassified, class_3_static_lease)

// Why a run was started, and by what.
BOOST_DEFINE_ENUM_CLASS(InvocationSource, on_demand, timer, assignment, automation)
BOOST_DEFINE_ENUM_CLASS(TriggerDetail, manual, ping, callback, system)
BOOST_DEFINE_ENUM_CLASS(OutputStream, stdout_, stderr_)
BOOST_DEFINE_ENUM_CLASS(EventStream, system, stdout_, stderr_)
BOOST_DEFINE_ENUM_CLASS(EventLevel, debug, info, warn, error)

BOOST_DEFINE_ENUM_CLASS(TemplateKind, snapshot, image, provider_template, unknown)
BOOST_DEFINE_ENUM_CLASS(SetupConnection, ssh, browser_terminal, unknown)

BOOST_DEFINE_ENUM_CLASS(DeleteBlocked, managed_local, instance_default, reusable_sandbox_lease,
                        pending_sandbox_cleanup)

BOOST_DEFINE_ENUM_CLASS(ActorType, user, agent, system)
BOOST_DEFINE_ENUM_CLASS(TokenKind, operator_key, agent_key)
BOOST_DEFINE_ENUM_CLASS(Role, admin, operator_, viewer)

}  // namespace berth::core
