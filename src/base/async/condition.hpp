#pragma once

#include "base/async/event.hpp"

#include <set>
#include <utility>

namespace berth {

// A condition variable for coroutines: each waits for its own predicate, until its own deadline.
// For one thread.
class Condition {
 public:
  using Moment = Event::Moment;

  explicit Condition(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  // Makes every waiter check its predicate.
  void notify() {
    for (Event* event : events_) event->notify();
  }
  // Until `holds` is true, or the deadline has passed. `cancelled` when the task was asked to end.
  template <class Predicate>
  Task<> wait_for(Predicate holds, Moment at = Moment::max()) {
    Waiter waiter{*this};
    while (!holds() && std::chrono::steady_clock::now() < at) {
      BERTH_CO_DO(co_await waiter.event.wait_until(at));
    }
    co_return Result<>{};
  }

 private:
  struct Waiter {
    explicit Waiter(Condition& condition) : owner(condition), event(condition.executor_) {
      owner.events_.insert(&event);
    }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { owner.events_.erase(&event); }

    Condition& owner;
    Event event;
  };

  asio::any_io_executor executor_;
  std::set<Event*> events_;
};

}  // namespace berth
