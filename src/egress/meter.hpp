#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace berth::egress {

// How fast a sandbox may move bytes. A connection that moved some asks how long to pause. All
// connections share one meter, so that more of them are not faster.
class Meter {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // 0 bytes per second: unlimited.
  explicit Meter(std::uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  std::chrono::nanoseconds spend(std::uint64_t bytes, Moment now) {
    if (bytes_per_second_ == 0) return {};
    const auto cost = std::chrono::nanoseconds{static_cast<std::int64_t>(
        static_cast<double>(bytes) * 1e9 / static_cast<double>(bytes_per_second_))};
    paid_until_ = std::max(paid_until_, now - burst) + cost;
    return std::max(std::chrono::nanoseconds{}, std::chrono::nanoseconds{paid_until_ - now});
  }

 private:
  static constexpr std::chrono::milliseconds burst{100};

  std::uint64_t bytes_per_second_;
  Moment paid_until_ = {};
};

}  // namespace berth::egress
