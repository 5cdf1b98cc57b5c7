#pragma once

#include "base/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

namespace berth::core {

// One run's exclusive right to use an environment. It outlives the environment's row, so that
// release never needs it.
struct Lease {
  LeaseId id;
  CompanyId company_id;
  std::optional<EnvironmentId> environment_id;
  std::optional<WorkspaceId> execution_workspace_id;
  std::optional<IssueId> issue_id;
  std::optional<RunId> heartbeat_run_id;  // absent: an ad-hoc lease of a probe
  LeaseState status = LeaseState::acquiring;
  LeasePolicy lease_policy = LeasePolicy::ephemeral;
  std::optional<std::string> provider;
  std::optional<std::string> provider_lease_id;
  Time acquired_at;
  Time last_used_at;
  std::optional<Time> expires_at;
  std::optional<Time> released_at;
  std::optional<std::string> failure_reason;
  std::optional<CleanupStatus> cleanup_status;
  std::optional<bj::object> metadata;
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(Lease, (),
                      (id, company_id, environment_id, execution_workspace_id, issue_id,
                       heartbeat_run_id, status, lease_policy, provider, provider_lease_id,
                       acquired_at, last_used_at, expires_at, released_at, failure_reason,
                       cleanup_status, metadata, created_at, updated_at))

}  // namespace berth::core
