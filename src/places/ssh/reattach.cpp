#include "places/ssh/reattach.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace berth::places::ssh {
namespace {

constexpr std::chrono::milliseconds first_pause{100};
constexpr std::chrono::milliseconds longest_pause{5'000};

}  // namespace

Task<> FollowedOutput::take(std::span<const OutputPiece> pieces) {
  const std::uint64_t next = pieces.back().next_offset;
  Result<> taken = co_await taker_.take(pieces);
  if (taken) offset_ = next;
  if (!taken) refused_ = taken.error();
  co_return taken;
}

Task<bool> Patience::wait() {
  const auto now = Clock::now();
  if (!since_) {
    since_ = now;
    pause_ = first_pause;
  } else {
    pause_ = std::min(pause_ * 2, longest_pause);
  }
  if (now + pause_ >= *since_ + limit_) co_return false;
  asio::steady_timer timer{co_await asio::this_coro::executor, pause_};
  const auto [error] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return fail(Errc::cancelled, "the wait was stopped");
  co_return true;
}

bool is_about_the_connection(Errc code) {
  return code == Errc::ssh_unreachable || code == Errc::ssh_failed ||
         code == Errc::keeper_unreachable || code == Errc::timed_out;
}

}  // namespace berth::places::ssh
