#pragma once

#include "base/async/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <optional>

namespace berth::cli {

// Waits until a descriptor can be read or written. Other processes share it, so it remains
// blocking: O_NONBLOCK would affect every process that holds the same terminal or pipe. Asio sets
// that flag on what it waits for, so it waits for our own epoll instead.
class Readiness {
 public:
  enum class For { reading, writing };

  static Result<Readiness> open(const asio::any_io_executor& executor, int fd, For what);

  // Whether the next small read or write returns at once.
  bool now() const;
  // Returns when it is ready; at once for a plain file, which always is.
  Task<> wait();

 private:
  Readiness(int fd, short events) : fd_(fd), events_(events) {}

  int fd_;
  short events_;
  std::optional<asio::posix::stream_descriptor> epoll_ = {};  // absent: a file that epoll refuses
};

}  // namespace berth::cli
