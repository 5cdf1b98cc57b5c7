#pragma once

#include "base/task.hpp"
#include "core/ids.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <list>

namespace berth::engine {

// Wakes whoever waits for news of a company. It carries no news itself: the store does, so nothing
// can be missed, and a change made by another server is found at the latest when the wait ends. One
// thread.
class Feed {
 public:
  explicit Feed(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void changed(const core::CompanyId& company);
  // Until something changed or the time is over. Ends with `cancelled` when the waiting task is to
  // stop.
  Task<> wait(core::CompanyId company, std::chrono::milliseconds at_most);

 private:
  struct Waiter {
    core::CompanyId company;
    asio::steady_timer timer;
    bool woken = false;
  };

  asio::any_io_executor executor_;
  std::list<Waiter> waiters_;
};

}  // namespace berth::engine
