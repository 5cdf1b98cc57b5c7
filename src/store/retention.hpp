#pragma once

#include "core/access.hpp"
#include "store/runs.hpp"

// What companies store, what of it has expired, and its removal.
namespace berth::store {

// What a company's finished runs occupy: their retained logs, and their callers' input.
struct CompanyBytes {
  core::CompanyId company_id;
  std::int64_t bytes = 0;
};
// For every company that stores something. Reads one index entry per run, so call it only from time
// to time.
Result<std::vector<CompanyBytes>> stored_bytes(Session& session);
// A company's queued and active runs, counted up to `most`.
Result<std::int64_t> count_unfinished_runs(Session& session, const core::CompanyId& company,
                                           std::int64_t most);

// What one run counts for: its payload, and its log if retained.
Result<std::int64_t> run_bytes(Session& session, const core::RunId& id);

// A finished run that may be removed, and how many bytes that frees.
struct ExpiredRun {
  core::RunId id;
  core::CompanyId company_id;
  std::int64_t bytes = 0;
};
// Oldest first. Keeps a run that a later run repeats, and a run whose lease is not final.
Result<std::vector<ExpiredRun>> expired_runs(Session& session, Time before, std::int64_t limit);
// Runs with a retained log, oldest first.
Result<std::vector<ExpiredRun>> expired_logs(Session& session, Time before, std::int64_t limit);

// Deletes the run with its events, secret bindings and leases. `conflict` when the run or one of
// its leases is not final.
Result<> delete_run(Session& session, const core::RunId& id);
Result<> mark_log_removed(Session& session, const core::RunId& id, Time now);

// Removes old events of finished runs, among the `limit` events that follow `after`.
struct EventSweep {
  std::int64_t last = 0;  // the last event examined
  bool complete = false;  // no older event follows
};
Result<EventSweep> forget_run_events(Session& session, std::int64_t after, Time before,
                                     std::int64_t limit);

// A company's limits that differ from the instance's, as a JSON object.
Result<bj::object> find_quota(Session& session, const core::CompanyId& company);
Result<> save_quota(Session& session, const core::CompanyId& company, const bj::object& quota);

}  // namespace berth::store
