#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

// Bytes on their way in or out, a piece at a time. Sources and sinks may block, and an error from
// one ends the whole transfer.
namespace berth::workspaces {

using ByteSink = std::function<Result<>(std::string_view)>;
// The next bytes, valid until the next call; empty at the end.
using ByteSource = std::function<Result<std::string_view>()>;

// Bytes that are all there, in one piece.
inline ByteSource source_of(std::string_view bytes) {
  return [bytes]() mutable -> Result<std::string_view> { return std::exchange(bytes, {}); };
}

struct Progress {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};
using ProgressSink = std::function<void(const Progress&)>;

// Counts, and reports now and then: a call for each file could cost more than the file.
class Meter {
 public:
  explicit Meter(ProgressSink sink = {}) : sink_(std::move(sink)) {}

  void add_entry() {
    ++now_.entries;
    say_if_due();
  }
  void add_bytes(std::uint64_t bytes) {
    now_.bytes += bytes;
    say_if_due();
  }
  const Progress& now() const { return now_; }

 private:
  static constexpr std::uint64_t bytes_between = 4 << 20;
  static constexpr std::uint64_t entries_between = 512;

  void say_if_due() {
    if (now_.bytes - said_.bytes < bytes_between && now_.entries - said_.entries < entries_between)
      return;
    said_ = now_;
    if (sink_) sink_(now_);
  }

  ProgressSink sink_;
  Progress now_;
  Progress said_;
};

}  // namespace berth::workspaces
