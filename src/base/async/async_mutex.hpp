#pragma once

#include "base/assert.hpp"
#include "base/async/event.hpp"

#include <utility>

namespace berth {

// A mutex for coroutines, held across awaits. Its holder awaits only operations with a deadline,
// which therefore bounds the wait of the others. For one thread.
class AsyncMutex {
 public:
  class [[nodiscard]] Lock {
   public:
    explicit Lock(AsyncMutex& mutex) : mutex_(&mutex) {
      BERTH_ASSERT(!mutex.locked_);
      mutex.locked_ = true;
    }
    Lock(Lock&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    Lock& operator=(Lock&&) = delete;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() {
      if (mutex_ == nullptr) return;
      mutex_->locked_ = false;
      mutex_->unlocked_.notify();
    }

   private:
    AsyncMutex* mutex_;
  };

  explicit AsyncMutex(asio::any_io_executor executor) : unlocked_(std::move(executor)) {}

  Task<Lock> lock() {
    while (locked_) BERTH_CO_DO(co_await unlocked_.wait());
    co_return Lock{*this};
  }
  bool locked() const { return locked_; }

 private:
  bool locked_ = false;
  Event unlocked_;
};

}  // namespace berth
