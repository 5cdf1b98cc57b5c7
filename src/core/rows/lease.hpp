#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"
#include "core/rows/agent_home.hpp"

#include <vector>

namespace berth::core {

// One run's exclusive right to use an environment. It outlives the environment's row, so that
// release never needs that row.
struct Lease {
  LeaseId id;
  CompanyId company_id;
  std::optional<EnvironmentId> environment_id = {};
  std::optional<WorkspaceId> execution_workspace_id = {};
  std::optional<IssueId> issue_id = {};
  std::optional<RunId> heartbeat_run_id = {};  // absent: a probe's ad-hoc lease
  LeaseState status = LeaseState::acquiring;
  LeasePolicy lease_policy = LeasePolicy::ephemeral;
  std::optional<std::string> provider = {};
  std::optional<std::string> provider_lease_id = {};
  Time acquired_at = {};
  Time last_used_at = {};
  std::optional<Time> expires_at = {};
  std::optional<Time> released_at = {};
  std::optional<std::string> failure_reason = {};
  std::optional<CleanupStatus> cleanup_status = {};
  std::optional<bj::object> metadata = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(Lease, (),
                      (id, company_id, environment_id, execution_workspace_id, issue_id,
                       heartbeat_run_id, status, lease_policy, provider, provider_lease_id,
                       acquired_at, last_used_at, expires_at, released_at, failure_reason,
                       cleanup_status, metadata, created_at, updated_at))

// Whether the sandbox of such a lease may serve later leases.
inline bool is_reuse(LeasePolicy policy) {
  return policy == LeasePolicy::reuse_by_environment ||
         policy == LeasePolicy::reuse_by_execution_workspace;
}

// What is known about an acquire whose response was not recorded.
BOOST_DEFINE_ENUM_CLASS(AcquireTrace,
                        none_made,    // it was never sent, or was refused
                        found,        // on retry, the provider returned the same sandbox each time
                        untraceable,  // on retry, it created others
                        named)        // an operator has named the sandbox

// A sandbox known only by its provider id and metadata.
struct Stray {
  std::optional<std::string> provider_lease_id = {};
  bj::object metadata = {};

  friend bool operator==(const Stray&, const Stray&) = default;
};
BOOST_DESCRIBE_STRUCT(Stray, (), (provider_lease_id, metadata))

// What teardown needs besides the lease's own columns, as of acquisition: teardown uses neither the
// current environment nor the current plugin.
struct Teardown {
  std::optional<PluginId> plugin_id = {};
  std::optional<std::string> plugin_version = {};
  bj::object config = {};                        // secret ids, never values
  std::optional<std::string> state_folder = {};  // the keeper's, below the node's state folder
  std::optional<TemplateId> template_id = {};    // what its sandbox started from
  // Something other than a run uses it: a server restart does not end it.
  std::optional<bool> kept = {};
  std::optional<SetupSessionId> setup_session_id = {};  // the session that requested it
  // Only for a lease that was never acquired, from a provider that cannot look it up by our key.
  std::optional<AcquireTrace> acquire_trace = {};
  std::optional<std::vector<Stray>> strays = {};  // to be destroyed with the lease
  std::optional<AgentHomeId> home_id = {};        // of the agent that works in it

  friend bool operator==(const Teardown&, const Teardown&) = default;
};
BOOST_DESCRIBE_STRUCT(Teardown, (),
                      (plugin_id, plugin_version, config, state_folder, template_id, kept,
                       setup_session_id, acquire_trace, strays, home_id))

// A lease as the store keeps it: what the API shows, and what only the engine needs to end it.
struct LeaseRecord : Lease {
  std::optional<SandboxId> sandbox_id = {};
  std::optional<NodeId> node_id = {};  // the server that works with it
  DriverKind driver = DriverKind::local;
  Teardown teardown = {};
  std::optional<LeaseEvent> release_event = {};  // how it will end, once known
  std::int64_t attempts = 0;                     // teardown attempts
  std::optional<Time> next_attempt_at = {};      // when the sweeper acts; absent: never on its own
  std::optional<Time> parked_at = {};            // the sweeper gave up; an operator must decide
  std::optional<NodeId> claimed_by = {};  // the sweeper working on it, until the claim lapses
  std::optional<Time> claimed_until = {};
};
BOOST_DESCRIBE_STRUCT(LeaseRecord, (Lease),
                      (sandbox_id, node_id, driver, teardown, release_event, attempts,
                       next_attempt_at, parked_at, claimed_by, claimed_until))

}  // namespace berth::core
