#pragma once

#include "engine/accounts/quotas.hpp"
#include "engine/runs/run_log.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// Removes what has served its time: kept answers of requests with an Idempotency-Key, servers that
// were fenced a week ago, runs, logs and events past their retention, and logs of this server whose
// runs are deleted. Counts anew what companies store. What fails is logged, and done the next time.
Task<> clean_once(Services& services, const RunLogs& logs, Quotas& quotas);
// The same from time to time, until it is cancelled.
Task<> keep_clean(Services& services, const RunLogs& logs, Quotas& quotas,
                  asio::any_io_executor executor);

}  // namespace berth::engine
