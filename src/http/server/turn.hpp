#pragma once

#include "base/async/task.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace berth::http {

// One coroutine at a time writes to a stream; the others wait for their turn. One thread.
class Turn {
 public:
  class [[nodiscard]] Held {
   public:
    explicit Held(Turn& turn) : turn_(&turn) {}
    Held(Held&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Held& operator=(Held&&) = delete;
    ~Held() {
      if (turn_ != nullptr) turn_->give();
    }

   private:
    Turn* turn_;
  };

  explicit Turn(const asio::any_io_executor& executor)
      : given_(executor, asio::steady_timer::time_point::max()) {}

  asio::awaitable<Held> take() {
    while (taken_) co_await given_.async_wait(asio::as_tuple(asio::use_awaitable));
    taken_ = true;
    co_return Held{*this};
  }
  bool taken() const { return taken_; }

 private:
  void give() {
    taken_ = false;
    given_.cancel();
  }

  bool taken_ = false;
  asio::steady_timer given_;  // expires never; cancelled when the turn is free
};

}  // namespace berth::http
