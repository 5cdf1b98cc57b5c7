#pragma once

#include "base/async/task.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <utility>

namespace berth {

// Wakes every coroutine that waits for it. It keeps no state: a waiter checks its condition before
// and after the wait, so a notification without a waiter is not missed. For one thread.
class Event {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  explicit Event(asio::any_io_executor executor) : timer_(std::move(executor), Moment::max()) {}

  void notify() { timer_.cancel(); }
  // `cancelled` when the waiting task was asked to end.
  Task<> wait() { return wait_until(Moment::max()); }
  // Also returns at that time, which is the same for all waiters of one event.
  Task<> wait_until(Moment at) {
    if (timer_.expiry() != at) timer_.expires_at(at);
    co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) {
      co_return fail(Errc::cancelled, "the wait was stopped");
    }
    co_return Result<>{};
  }

 private:
  asio::steady_timer timer_;
};

}  // namespace berth
