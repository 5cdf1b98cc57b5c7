#include "engine/leases/lease_notes.hpp"

namespace berth::engine {

using core::LeaseRecord;

core::Call system_call(const core::CompanyId& company) {
  return {.who = {.kind = core::CallerKind::system, .company_id = company}};
}

core::Call call_of(const LeaseRecord& lease) {
  return {.who = {.kind = core::CallerKind::system, .company_id = lease.company_id},
          .run_id = lease.heartbeat_run_id};
}

Entry entry_of(const LeaseRecord& lease, std::string_view action) {
  bj::object details{{"driver", name_of(lease.driver)},
                     {"leasePolicy", name_of(lease.lease_policy)},
                     {"status", name_of(lease.status)}};
  if (lease.environment_id) details["environmentId"] = lease.environment_id->str();
  if (lease.provider) details["provider"] = *lease.provider;
  if (lease.failure_reason) details["failureReason"] = *lease.failure_reason;
  return {lease.company_id, action, "environment_lease", lease.id.str(), std::move(details)};
}

}  // namespace berth::engine
