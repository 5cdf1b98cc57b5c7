#pragma once

#include "base/result.hpp"

#include <boost/describe/enum.hpp>

#include <poll.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace berth::files {

BOOST_DEFINE_ENUM_CLASS(Phase, unpacking, copying, hashing, saving)

struct Progress {
  Phase phase = Phase::unpacking;
  std::uint64_t bytes = 0;    // in this phase
  std::uint64_t entries = 0;  // in this phase
};
using ProgressSink = std::function<void(const Progress&)>;

inline std::unexpected<Error> interrupted() {
  return fail(Errc::cancelled, "was interrupted");
}

// Counts the work and reports it now and then, because a call for each file could cost more than
// the file. It also knows whether to continue: not if `stop` is readable.
class Meter {
 public:
  explicit Meter(ProgressSink sink = {}, int stop = -1) : sink_(std::move(sink)), stop_(stop) {}

  // `cancelled` if the work must end.
  Result<> go_on() const {
    pollfd stop{.fd = stop_, .events = POLLIN, .revents = 0};
    if (stop_ < 0 || ::poll(&stop, 1, 0) <= 0) return {};
    return interrupted();
  }

  void begin(Phase phase) {
    now_ = {.phase = phase};
    say();
  }
  void add_bytes(std::uint64_t bytes) {
    now_.bytes += bytes;
    if (now_.bytes - said_.bytes >= bytes_between) say();
  }
  void add_entry() {
    ++now_.entries;
    if (now_.entries - said_.entries >= entries_between) say();
  }
  const Progress& now() const { return now_; }

 private:
  static constexpr std::uint64_t bytes_between = 4 << 20;
  static constexpr std::uint64_t entries_between = 512;

  void say() {
    said_ = now_;
    if (sink_) sink_(now_);
  }

  ProgressSink sink_;
  int stop_;
  Progress now_;
  Progress said_;
};

}  // namespace berth::files
