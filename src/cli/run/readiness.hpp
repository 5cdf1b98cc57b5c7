#pragma once

#include "base/async/task.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>

#include <optional>

namespace berth::cli {

// Waits until a descriptor can be read or written. It is shared with other processes, so it stays
// blocking: O_NONBLOCK would be seen by every process that holds the same terminal or pipe. Asio
// sets that flag on what it waits for, so it is given an epoll of our own to wait for instead.
class Readiness {
 public:
  enum class For { reading, writing };

  static Result<Readiness> open(const asio::any_io_executor& executor, int fd, For what);

  // Whether the next small read or write returns at once.
  bool now() const;
  // Returns when it is so; for a plain file, which always is, at once.
  Task<> wait();

 private:
  Readiness(int fd, short events) : fd_(fd), events_(events) {}

  int fd_;
  short events_;
  std::optional<asio::posix::stream_descriptor> epoll_ = {};  // absent: a file that epoll refuses
};

}  // namespace berth::cli
