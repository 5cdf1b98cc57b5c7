#pragma once

#include "engine/accounts/quotas.hpp"
#include "engine/runs/run_log.hpp"

// Data that has expired by the instance's settings. The row first records that a log is to be
// removed, then its files are deleted. forget_lost_logs finds the files if a server died in
// between.
namespace berth::engine {

// One batch of finished runs, with logs and events. Returns how many were removed.
Task<std::int64_t> remove_old_runs(Services& services, const RunLogs& logs, Quotas& quotas);
// One batch of logs whose runs are kept.
Task<std::int64_t> remove_old_logs(Services& services, const RunLogs& logs, Quotas& quotas);
// All old events of finished runs.
Task<> remove_old_events(Services& services);
// Logs on this server's disk whose run is deleted, or records that its log is removed.
Task<> forget_lost_logs(Services& services, const RunLogs& logs);

}  // namespace berth::engine
