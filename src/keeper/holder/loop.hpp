#pragma once

#include "keeper/protocol/protocol.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace berth::keeper {

// Time since boot, including sleep. A deadline passes whatever the wall clock does.
using BootMs = std::int64_t;
inline constexpr BootMs never = INT64_MAX;
BootMs boot_ms();

// What the loop waits for in one turn, and the callbacks. It is filled anew each turn, so no
// registration can outlive its owner.
class PollSet {
 public:
  using Ready = std::function<void(short events)>;

  void watch(int fd, short events, Ready ready) {
    wanted_.push_back({fd, events, 0});
    ready_.push_back(std::move(ready));
  }
  void wake_by(BootMs at) { wake_at_ = std::min(wake_at_, at); }
  // Waits once and calls the callbacks of all ready descriptors.
  void run();

 private:
  std::vector<pollfd> wanted_;
  std::vector<Ready> ready_;
  BootMs wake_at_ = never;
};

// Where an answer is sent. If the client has disconnected, the answer is dropped.
struct Address {
  std::uint64_t client = 0;
  std::uint64_t request = 0;
};

class Outbox {
 public:
  virtual ~Outbox() = default;
  virtual void deliver(std::uint64_t client, std::string frame) = 0;
};

template <Described Message>
void answer(Outbox& outbox, Address to, const Message& message) {
  std::string frame;
  append_frame(frame, to.request, message);
  outbox.deliver(to.client, std::move(frame));
}

}  // namespace berth::keeper
