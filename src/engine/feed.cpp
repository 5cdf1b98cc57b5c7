#include "engine/feed.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::engine {

void Feed::wake(const std::string& topic, News news) {
  for (Waiter& waiter : waiters_) {
    if (waiter.topic != topic || news > waiter.awaited) continue;
    waiter.woken = true;
    waiter.timer.cancel();
  }
}

Task<> Feed::wait_for(std::string topic, News awaited, std::chrono::milliseconds at_most) {
  waiters_.push_back({std::move(topic), awaited, asio::steady_timer{executor_, at_most}});
  const auto place = std::prev(waiters_.end());
  const auto [error] = co_await place->timer.async_wait(asio::as_tuple(asio::use_awaitable));
  const bool woken = place->woken;
  waiters_.erase(place);
  if (error && !woken) co_return fail(Errc::cancelled, "the wait for news was stopped");
  co_return Result<>{};
}

}  // namespace berth::engine
