#pragma once

#include "places/place.hpp"

#include <chrono>

namespace berth::places::ssh {

// Remembers how far a taker has read, so that its source can continue there after a break.
class FollowedOutput final : public OutputTaker {
 public:
  FollowedOutput(OutputTaker& taker, std::uint64_t offset) : taker_(taker), offset_(offset) {}

  Task<> take(std::span<const OutputPiece> pieces) override;
  std::uint64_t offset() const { return offset_; }
  // The taker accepts no more; its error ends the following.
  const std::optional<Error>& refused() const { return refused_; }

 private:
  OutputTaker& taker_;
  std::uint64_t offset_;
  std::optional<Error> refused_;
};

// When to retry a broken connection, and how long before giving up.
class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Patience(std::chrono::milliseconds limit) : limit_(limit) {}

  void progress() { since_.reset(); }
  // Waits, longer each time; false when the time is over.
  Task<bool> wait();

 private:
  std::chrono::milliseconds limit_;
  std::chrono::milliseconds pause_{0};
  std::optional<Clock::time_point> since_;
};

// Whether reconnecting may help.
bool is_about_the_connection(Errc code);

}  // namespace berth::places::ssh
