#pragma once

#include "drivers/driver.hpp"

#include <chrono>

namespace berth::drivers::ssh {

// Remembers how far a taker has come, so that whoever feeds it can go on there after a break.
class FollowedOutput final : public OutputTaker {
 public:
  FollowedOutput(OutputTaker& taker, std::uint64_t offset) : taker_(taker), offset_(offset) {}

  Task<> take(std::span<const OutputPiece> pieces) override;
  std::uint64_t offset() const { return offset_; }
  // The taker wants no more; its error ends the following.
  const std::optional<Error>& refused() const { return refused_; }

 private:
  OutputTaker& taker_;
  std::uint64_t offset_;
  std::optional<Error> refused_;
};

// When a broken connection is tried again, and for how long in vain.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}

  void progress() { since_.reset(); }
  // Waits a while, longer each time; false when it is over.
  Task<bool> wait();

 private:
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds pause_{0};
  std::optional<Clock::time_point> since_;
};

// A connection made again may help.
bool is_about_the_connection(Errc code);

}  // namespace berth::drivers::ssh
