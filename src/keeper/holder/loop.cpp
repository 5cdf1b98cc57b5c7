#include "keeper/holder/loop.hpp"

#include <ctime>

namespace berth::keeper {
namespace {

// poll does not count the time that the machine sleeps. A deadline that passed during sleep is
// noticed at most this long after the machine wakes.
constexpr BootMs longest_wait_ms = 30'000;

}  // namespace

BootMs boot_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<BootMs>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

void PollSet::run() {
  BootMs wait_ms = longest_wait_ms;
  if (wake_at_ != never) wait_ms = std::clamp<BootMs>(wake_at_ - boot_ms(), 0, longest_wait_ms);
  if (::poll(wanted_.data(), wanted_.size(), static_cast<int>(wait_ms)) <= 0) return;
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (wanted_[i].revents != 0) ready_[i](wanted_[i].revents);
  }
}

}  // namespace berth::keeper
