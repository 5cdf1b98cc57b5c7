#pragma once

#include "engine/means.hpp"
#include "engine/run_log.hpp"

namespace berth::engine {

// Removes what has served its time: kept answers of requests with an Idempotency-Key, servers that
// were fenced a week ago, and logs of this server whose runs are gone. Runs until it is cancelled.
Task<> keep_clean(Means& means, const RunLogs& logs, asio::any_io_executor executor);

}  // namespace berth::engine
