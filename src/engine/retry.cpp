#include "engine/retry.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace berth::engine {

bool is_outage(Errc code) {
  switch (code) {
    case Errc::store_unreachable:
    case Errc::store_locked:
    case Errc::store_read_only:
    case Errc::store_full:
    case Errc::overloaded: return true;
    default: return false;
  }
}

Task<> pause_for(asio::any_io_executor executor, std::chrono::milliseconds time) {
  asio::steady_timer timer{executor, time};
  const auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Errc::cancelled, "the wait was stopped");
  co_return Result<>{};
}

std::chrono::milliseconds pause_after(int tries) {
  return std::chrono::milliseconds{std::min(5000, 200 << std::min(tries, 5))};
}

}  // namespace berth::engine
