#include "cli/run/readiness.hpp"

#include "base/files.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>

namespace berth::cli {

Result<Readiness> Readiness::open(const asio::any_io_executor& executor, int fd, For what) {
  const bool reads = what == For::reading;
  Readiness made{fd, static_cast<short>(reads ? POLLIN : POLLOUT)};
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  if (epoll < 0) return io_failure("epoll_create1", "a descriptor", errno);
  made.epoll_.emplace(executor, epoll);
  epoll_event event{.events = static_cast<std::uint32_t>(reads ? EPOLLIN : EPOLLOUT), .data = {}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return made;
  if (errno != EPERM) return io_failure("epoll_ctl", "descriptor " + std::to_string(fd), errno);
  made.epoll_.reset();
  return made;
}

bool Readiness::now() const {
  if (!epoll_) return true;
  pollfd poll{.fd = fd_, .events = events_, .revents = 0};
  return ::poll(&poll, 1, 0) > 0;
}

Task<> Readiness::wait() {
  while (!now()) {
    const auto [error] = co_await epoll_->async_wait(asio::posix::stream_descriptor::wait_read,
                                                     asio::as_tuple(asio::use_awaitable));
    if (error) co_return fail(Errc::cancelled, "the wait was cancelled");
  }
  co_return Result<>{};
}

}  // namespace berth::cli
