#pragma once

#include "engine/accounts/quotas.hpp"
#include "engine/runs/run_log.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// Removes expired data: stored responses of requests with an Idempotency-Key, servers that were
// fenced a week ago, runs, logs and events past their retention, and this server's logs of deleted
// runs. Also recounts what companies store. Failures are logged and retried next time.
Task<> clean_once(Services& services, const RunLogs& logs, Quotas& quotas);
// Does the same from time to time, until cancelled.
Task<> keep_clean(Services& services, const RunLogs& logs, Quotas& quotas,
                  asio::any_io_executor executor);

}  // namespace berth::engine
