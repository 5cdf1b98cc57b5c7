#pragma once

#include "execution/bell.hpp"

#include <utility>

namespace berth::drivers::ssh {

// One at a time, across awaits. Whoever has the turn does only things that have a deadline, which
// is then the deadline of those who wait.
class Turn {
 public:
  class [[nodiscard]] Pass {
   public:
    explicit Pass(Turn& turn) : turn_(&turn) { turn.taken_ = true; }
    Pass(Pass&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Pass& operator=(Pass&&) = delete;
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() {
      if (turn_ == nullptr) return;
      turn_->taken_ = false;
      turn_->free_.ring();
    }

   private:
    Turn* turn_;
  };

  explicit Turn(asio::any_io_executor executor) : free_(std::move(executor)) {}

  Task<Pass> take() {
    while (taken_) BERTH_CO_DO(co_await free_.wait());
    co_return Pass{*this};
  }

 private:
  bool taken_ = false;
  execution::Bell free_;
};

}  // namespace berth::drivers::ssh
