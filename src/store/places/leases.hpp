#pragma once

#include "core/access.hpp"
#include "core/rows/lease.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Lease> = "environment_leases";
template <>
inline constexpr std::string_view table_of<core::LeaseRecord> = "environment_leases";
template <>
inline constexpr std::string_view fixed_columns_of<core::LeaseRecord> =
    "company_id environment_id execution_workspace_id issue_id heartbeat_run_id lease_policy"
    " created_at sandbox_id driver";

struct LeaseFilter {
  std::optional<core::LeaseState> status = {};
  std::optional<core::EnvironmentId> environment_id = {};
  bool parked_only = false;
  bool held_only = false;  // without finished ones
};

// Records the intent, before anything is acquired. environment_not_found when the company or the
// environment no longer exists; `conflict` when the sandbox or the run already has a live lease.
Result<> insert_lease(Session& session, const core::LeaseRecord& lease);
// The same, for callers that continue with the row.
Result<Stored<core::LeaseRecord>> inserted_lease(Session& session, core::LeaseRecord lease);
// Ordered by (last_used_at, id) descending.
Result<Page<core::Lease>> list_leases(Session& session, const core::EnvironmentId& environment,
                                      std::optional<core::LeaseState> status,
                                      const PageRequest& page);
Result<Page<core::LeaseRecord>> list_company_leases(Session& session,
                                                    const core::CompanyId& company,
                                                    const LeaseFilter& filter,
                                                    const PageRequest& page);
Result<Stored<core::Lease>> find_lease(Session& session, const core::Reach& reach,
                                       const core::LeaseId& id);
Result<Stored<core::LeaseRecord>> find_lease_record(Session& session, const core::Reach& reach,
                                                    const core::LeaseId& id);
// Oldest first, including final ones.
Result<std::vector<Stored<core::LeaseRecord>>> leases_of_run(Session& session,
                                                             const core::RunId& run);
// The unfinished leases that a node works with.
Result<std::vector<Stored<core::LeaseRecord>>> leases_of_node(Session& session,
                                                              const core::NodeId& node,
                                                              std::int64_t limit);
// The unfinished lease that holds the sandbox.
Result<std::optional<Stored<core::LeaseRecord>>> live_lease_of(Session& session,
                                                               const core::SandboxId& sandbox);

// Moves the lease to the state that follows on this event, with its other fields as given. If they
// have no next_attempt_at, a failed teardown is due at once and any other unfinished lease when it
// expires. A final lease is not due, gets its released_at, and is neither claimed nor parked.
// `conflict` when the event is not allowed, or another writer was faster.
Result<Stored<core::LeaseRecord>> move_lease(Session& session, Stored<core::LeaseRecord> lease,
                                             core::LeaseEvent event, Time now);
// The same without a state change: facts from the driver, a later due time, a new node.
Result<Stored<core::LeaseRecord>> update_lease(Session& session, Stored<core::LeaseRecord> lease,
                                               Time now);

// Leases for the sweeper, the longest overdue first: not final, parked, claimed, or owned by
// another live node. A lease whose node is fenced is due from then on (see fence_node).
Result<std::vector<Stored<core::LeaseRecord>>> due_leases(Session& session,
                                                          const core::NodeId& node, Time now,
                                                          std::int64_t limit);
// Claims a due lease: no other sweeper finds it due before `until`. `conflict` when another was
// faster.
Result<Stored<core::LeaseRecord>> claim_lease(Session& session, Stored<core::LeaseRecord> lease,
                                              const core::NodeId& node, Time until, Time now);
// Hides the lease from the sweeper until an operator acts. `conflict` for a final lease.
Result<Stored<core::LeaseRecord>> park_lease(Session& session, Stored<core::LeaseRecord> lease,
                                             Time now);
// Makes the lease due at once and resets its attempts. `conflict` unless it is parked.
Result<Stored<core::LeaseRecord>> unpark_lease(Session& session, Stored<core::LeaseRecord> lease,
                                               Time now);
// Ends an unfinished lease as `expired` on an operator's order, whatever the provider still holds.
// cleanup_status `failed` and the reason record this.
Result<Stored<core::LeaseRecord>> force_resolve_lease(Session& session,
                                                      Stored<core::LeaseRecord> lease,
                                                      const std::string& reason, Time now);

}  // namespace berth::store
