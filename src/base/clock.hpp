#pragma once

#include "base/time.hpp"

#include <chrono>

namespace berth {

// Time as an argument, so that a test can run in another year. `now` may jump; `steady` never goes
// back.
class Clock {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual Time now() const = 0;
  virtual Steady steady() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time now() const override;
  Steady steady() const override { return std::chrono::steady_clock::now(); }
};

// The clock for tests: it stands still until a test advances it.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(Time start = Time{1'700'000'000'000}) : now_(start) {}
  Time now() const override { return now_; }
  Steady steady() const override { return Steady{std::chrono::milliseconds{now_.ms}}; }
  void advance(std::chrono::milliseconds by) { now_.ms += by.count(); }

 private:
  Time now_;
};

}  // namespace berth
