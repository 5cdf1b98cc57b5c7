#pragma once

#include "core/access.hpp"
#include "store/runs.hpp"

// What companies store, what of it has had its time, and its removal.
namespace berth::store {

// What finished runs of a company take: their logs as far as they are kept, and what their callers
// gave to them.
struct CompanyBytes {
  core::CompanyId company_id;
  std::int64_t bytes = 0;
};
// Of every company that has some. Reads one index entry per run: for a count from time to time.
Result<std::vector<CompanyBytes>> stored_bytes(Session& session);
// Runs of a company that wait or work, counted up to `most`.
Result<std::int64_t> count_unfinished_runs(Session& session, const core::CompanyId& company,
                                           std::int64_t most);

// What one run counts for: its payload, and its log as far as it is kept.
Result<std::int64_t> run_bytes(Session& session, const core::RunId& id);

// A finished run that may be removed, and what that frees.
struct ExpiredRun {
  core::RunId id;
  core::CompanyId company_id;
  std::int64_t bytes = 0;
};
// Oldest first. A run that a later run repeats, and a run whose lease is not final, are kept.
Result<std::vector<ExpiredRun>> expired_runs(Session& session, Time before, std::int64_t limit);
// Runs whose log is still kept, oldest first.
Result<std::vector<ExpiredRun>> expired_logs(Session& session, Time before, std::int64_t limit);

// The run with its events, its bindings of secrets and its leases. `conflict` when the run is not
// final, or holds a lease that is not.
Result<> delete_run(Session& session, const core::RunId& id);
Result<> mark_log_removed(Session& session, const core::RunId& id, Time now);

// Removes old events of finished runs, among the `limit` that follow the event `after`.
struct EventSweep {
  std::int64_t last = 0;  // the last event that was looked at
  bool complete = false;  // no older event follows
};
Result<EventSweep> forget_run_events(Session& session, std::int64_t after, Time before,
                                     std::int64_t limit);

// The limits of one company that differ from those of the instance, as a JSON object.
Result<bj::object> find_quota(Session& session, const core::CompanyId& company);
Result<> save_quota(Session& session, const core::CompanyId& company, const bj::object& quota);

}  // namespace berth::store
