#pragma once

#include "places/sandbox_provider.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace berth::places {

// The steps of a probe, each with its duration.
class Steps {
 public:
  template <class T>
  bool add(std::string name, const Result<T>& outcome, std::string message) {
    const auto now = std::chrono::steady_clock::now();
    ProbeStep step{
        .name = std::move(name),
        .ok = outcome.has_value(),
        .duration_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - since_).count(),
        .message = outcome ? std::move(message) : outcome.error().message};
    since_ = now;
    if (!outcome) {
      step.code = name_of(outcome.error().code);
      if (!outcome.error().remedy.empty()) step.remedy = outcome.error().remedy;
    }
    steps_.push_back(std::move(step));
    return outcome.has_value();
  }

  Verdict verdict(std::string good, bj::object details) && {
    const auto bad = std::ranges::find(steps_, false, &ProbeStep::ok);
    const bool ok = bad == steps_.end();
    std::string summary =
        ok ? std::move(good) : "This machine cannot make the sandbox: " + bad->message;
    return {.ok = ok,
            .summary = std::move(summary),
            .details = std::move(details),
            .steps = std::move(steps_)};
  }

 private:
  std::vector<ProbeStep> steps_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace berth::places
