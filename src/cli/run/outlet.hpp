#pragma once

#include "base/async/task.hpp"
#include "cli/run/readiness.hpp"

#include <iosfwd>
#include <optional>
#include <string_view>

namespace berth::cli {

// Writes bytes unchanged to a console stream, without blocking other tasks while the reader is
// slow. Fails with `cancelled` once the output has no reader.
class Outlet {
 public:
  // fd is the file behind the stream; -1: there is none, and the stream never blocks.
  static Result<Outlet> open(const asio::any_io_executor& executor, std::ostream& stream, int fd);
  Task<> write(std::string_view bytes);

 private:
  Outlet(std::ostream& stream, int fd) : stream_(&stream), fd_(fd) {}

  std::ostream* stream_;
  int fd_;
  std::optional<Readiness> ready_ = {};
};

}  // namespace berth::cli
