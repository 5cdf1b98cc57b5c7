#pragma once

#include "base/async/task.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>

// What happened in a place must be recorded, however long the store is unreachable.
namespace berth::engine {

// Whether the store may accept the same write later.
bool is_outage(Errc code);

// `cancelled` when the task must stop.
Task<> pause_for(asio::any_io_executor executor, std::chrono::milliseconds time);
// From 0.2 s up to 5 s.
std::chrono::milliseconds pause_after(int tries);

// Repeats an attempt until it succeeds or fails for a reason other than a store outage. An attempt
// is a plain function that returns a task; it must be repeatable.
template <class Attempt>
auto retry_during_outage(asio::any_io_executor executor, Attempt attempt)
    -> std::invoke_result_t<Attempt&> {
  for (int tries = 0;; ++tries) {
    auto outcome = co_await attempt();
    if (outcome || !is_outage(outcome.error().code)) co_return outcome;
    BERTH_CO_DO(co_await pause_for(executor, pause_after(tries)));
  }
}

}  // namespace berth::engine
