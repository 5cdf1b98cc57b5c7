#include "store/places/leases.hpp"

#include "store/nodes.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

using core::Lease;
using core::LeaseRecord;
using core::LeaseState;

constexpr std::string_view lease_noun = "Lease";
constexpr std::string_view by_id = "where id = $1 and ($2 = '' or company_id = $2)";

Error explain_lease(Error error, const LeaseRecord& lease) {
  if (violates_reference(error)) {
    return {Errc::environment_not_found, "Environment not found",
            "it was deleted while the lease was being made"};
  }
  if (violates(error, "environment_leases_sandbox_id")) {
    return {Errc::conflict, "Sandbox " + lease.sandbox_id->str() + " has a live lease already",
            "claim another sandbox, or make one"};
  }
  if (violates(error, "environment_leases_heartbeat_run_id")) {
    return {Errc::conflict, "Run " + lease.heartbeat_run_id->str() + " has a live lease already",
            "work with the lease that it has"};
  }
  return error;
}

std::unexpected<Error> lease_not_found_error() {
  return fail(Errc::lease_not_found, "Environment lease not found",
              "the environment's page lists its leases");
}

void set_time_to_look(LeaseRecord& lease, LeaseState state, Time now) {
  if (lease.next_attempt_at) return;
  lease.next_attempt_at =
      state == LeaseState::pending_cleanup ? std::optional{now} : lease.expires_at;
}

void end(LeaseRecord& lease, Time now) {
  lease.next_attempt_at.reset();
  lease.parked_at.reset();
  lease.claimed_by.reset();
  lease.claimed_until.reset();
  if (!lease.released_at) lease.released_at = now;
}

Result<> expect_unfinished(const LeaseRecord& lease) {
  if (!core::is_final(lease.status)) return {};
  return fail(Errc::conflict,
              "Lease " + lease.id.str() + " has ended: " + std::string{name_of(lease.status)});
}

}  // namespace

Result<Stored<LeaseRecord>> inserted_lease(Session& session, LeaseRecord lease) {
  if (!core::is_final(lease.status)) set_time_to_look(lease, lease.status, lease.created_at);
  Result<> done = insert(session, lease);
  if (!done) return std::unexpected(explain_lease(std::move(done).error(), lease));
  return Stored<LeaseRecord>{std::move(lease), 1};
}

Result<> insert_lease(Session& session, const LeaseRecord& lease) {
  BERTH_DO(inserted_lease(session, lease));
  return {};
}

Result<Page<Lease>> list_leases(Session& session, const core::EnvironmentId& environment,
                                std::optional<LeaseState> status, const PageRequest& page) {
  Filter filter;
  filter.equal("environment_id", environment).equal_if("status", status);
  return select_page(session, filter, &Lease::last_used_at, page);
}

Result<Page<LeaseRecord>> list_company_leases(Session& session, const core::CompanyId& company,
                                              const LeaseFilter& filter, const PageRequest& page) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("status", filter.status)
      .equal_if("environment_id", filter.environment_id);
  if (filter.parked_only) conditions.also("parked_at is not null");
  if (filter.held_only) conditions.also(is_unfinished<LeaseState>());
  return select_page<Lease, LeaseRecord>(session, conditions, &Lease::last_used_at, page);
}

Result<Stored<Lease>> find_lease(Session& session, const core::Reach& reach,
                                 const core::LeaseId& id) {
  BERTH_TRY(auto found, select_one<Lease>(session, by_id, id, reach.sql()));
  if (!found) return lease_not_found_error();
  return *std::move(found);
}

Result<Stored<LeaseRecord>> find_lease_record(Session& session, const core::Reach& reach,
                                              const core::LeaseId& id) {
  BERTH_TRY(auto found, select_one<LeaseRecord>(session, by_id, id, reach.sql()));
  if (!found) return lease_not_found_error();
  return *std::move(found);
}

Result<std::vector<Stored<LeaseRecord>>> leases_of_run(Session& session, const core::RunId& run) {
  return select<LeaseRecord>(session, "where heartbeat_run_id = $1 order by created_at, id", run);
}

Result<std::vector<Stored<LeaseRecord>>> leases_of_node(Session& session, const core::NodeId& node,
                                                        std::int64_t limit) {
  static const std::string tail =
      "where node_id = $1 and " + is_unfinished<LeaseState>() + " limit $2";
  return select<LeaseRecord>(session, tail, node, limit);
}

Result<std::optional<Stored<LeaseRecord>>> live_lease_of(Session& session,
                                                         const core::SandboxId& sandbox) {
  static const std::string tail = "where sandbox_id = $1 and " + is_unfinished<LeaseState>();
  return select_one<LeaseRecord>(session, tail, sandbox);
}

Result<Stored<LeaseRecord>> move_lease(Session& session, Stored<LeaseRecord> lease,
                                       core::LeaseEvent event, Time now) {
  LeaseRecord& row = lease.value;
  row.last_used_at = now;
  row.updated_at = now;
  if (const auto next = core::advance(row.status, event)) {
    core::is_final(*next) ? end(row, now) : set_time_to_look(row, *next, now);
  }
  return move_row(session, std::move(lease), event, lease_noun);
}

Result<Stored<LeaseRecord>> update_lease(Session& session, Stored<LeaseRecord> lease, Time now) {
  lease.value.updated_at = now;
  return rewrite(session, std::move(lease), lease_noun);
}

Result<std::vector<Stored<LeaseRecord>>> due_leases(Session& session, const core::NodeId& node,
                                                    Time now, std::int64_t limit) {
  static const std::string tail = "where parked_at is null and " + is_unfinished<LeaseState>() +
                                  " and next_attempt_at <= $1"
                                  " and (claimed_until is null or claimed_until <= $1) and " +
                                  is_for_node("environment_leases", "$2") +
                                  " order by next_attempt_at, id limit $3";
  return select<LeaseRecord>(session, tail, now, node, limit);
}

Result<Stored<LeaseRecord>> claim_lease(Session& session, Stored<LeaseRecord> lease,
                                        const core::NodeId& node, Time until, Time now) {
  BERTH_DO(expect_unfinished(lease.value));
  if (lease.value.claimed_until && *lease.value.claimed_until > now) {
    return fail(Errc::conflict, "Lease " + lease.value.id.str() + " is claimed by another node");
  }
  lease.value.claimed_by = node;
  lease.value.claimed_until = until;
  return update_lease(session, std::move(lease), now);
}

Result<Stored<LeaseRecord>> park_lease(Session& session, Stored<LeaseRecord> lease, Time now) {
  BERTH_DO(expect_unfinished(lease.value));
  lease.value.parked_at = now;
  lease.value.next_attempt_at.reset();
  lease.value.claimed_by.reset();
  lease.value.claimed_until.reset();
  return update_lease(session, std::move(lease), now);
}

Result<Stored<LeaseRecord>> unpark_lease(Session& session, Stored<LeaseRecord> lease, Time now) {
  if (!lease.value.parked_at) {
    return fail(Errc::conflict, "Lease " + lease.value.id.str() + " is not parked",
                "the sweeper looks after it by itself");
  }
  lease.value.parked_at.reset();
  lease.value.attempts = 0;
  lease.value.next_attempt_at = now;
  return update_lease(session, std::move(lease), now);
}

Result<Stored<LeaseRecord>> force_resolve_lease(Session& session, Stored<LeaseRecord> lease,
                                                const std::string& reason, Time now) {
  lease.value.failure_reason = reason;
  lease.value.cleanup_status = core::CleanupStatus::failed;
  // Uses the same table as every other move: a teardown that is not in progress must fail first.
  if (const auto cleaned = core::advance(lease.value.status, core::LeaseEvent::cleaned_up);
      !cleaned) {
    BERTH_TRY(lease, move_lease(session, std::move(lease), core::LeaseEvent::teardown_failed, now));
  }
  return move_lease(session, std::move(lease), core::LeaseEvent::cleaned_up, now);
}

}  // namespace berth::store
