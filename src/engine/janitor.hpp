#pragma once

#include "engine/means.hpp"

namespace berth::engine {

// Removes what has served its time: kept answers of requests with an Idempotency-Key, and servers
// that were fenced a week ago. Runs until it is cancelled.
Task<> keep_clean(Means& means, asio::any_io_executor executor);

}  // namespace berth::engine
