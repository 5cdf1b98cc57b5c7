#pragma once

#include "engine/accounts/quotas.hpp"
#include "engine/runs/run_log.hpp"

// What has had its time, as the settings of the instance say. The row says first that a log is to
// go, then its files go: forget_lost_logs finds the files of a server that died between the two.
namespace berth::engine {

// One batch of finished runs, with logs and events. How many were removed.
Task<std::int64_t> remove_old_runs(Services& services, const RunLogs& logs, Quotas& quotas);
// One batch of logs whose runs stay.
Task<std::int64_t> remove_old_logs(Services& services, const RunLogs& logs, Quotas& quotas);
// All old events of runs that are over.
Task<> remove_old_events(Services& services);
// Logs on this server's disk whose run is deleted, or says that its log is removed.
Task<> forget_lost_logs(Services& services, const RunLogs& logs);

}  // namespace berth::engine
