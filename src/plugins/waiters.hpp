#pragma once

#include "base/async/task.hpp"
#include "execution/bell.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <set>
#include <utility>

namespace berth::plugins {

// As execution::Bell, for several who wait, each until a moment of its own. One thread.
class Waiters {
 public:
  using Moment = execution::Bell::Moment;

  explicit Waiters(asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void ring() {
    for (execution::Bell* bell : bells_) bell->ring();
  }
  // Until `holds` is true, or the moment has come. `cancelled` when the task was asked to end.
  template <class Condition>
  Task<> wait_for(Condition holds, Moment at = Moment::max()) {
    Waiting waiting{*this};
    while (!holds() && std::chrono::steady_clock::now() < at) {
      BERTH_CO_DO(co_await waiting.bell.wait_until(at));
    }
    co_return Result<>{};
  }

 private:
  struct Waiting {
    explicit Waiting(Waiters& all) : owner(all), bell(all.executor_) { owner.bells_.insert(&bell); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { owner.bells_.erase(&bell); }

    Waiters& owner;
    execution::Bell bell;
  };

  asio::any_io_executor executor_;
  std::set<execution::Bell*> bells_;
};

}  // namespace berth::plugins
