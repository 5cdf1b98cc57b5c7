#include "cli/run/outlet.hpp"

#include "base/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ostream>

namespace berth::cli {

Result<Outlet> Outlet::open(const asio::any_io_executor& executor, std::ostream& stream, int fd) {
  Outlet made{stream, fd};
  if (fd < 0) return made;
  BERTH_TRY(made.ready_, Readiness::open(executor, fd, Readiness::For::writing));
  return made;
}

Task<> Outlet::write(std::string_view bytes) {
  if (fd_ < 0) {
    stream_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    co_return Result<>{};
  }
  stream_->flush();  // our own earlier text comes first
  while (!bytes.empty()) {
    BERTH_CO_DO(co_await ready_->wait());
    // A ready pipe accepts this much without blocking.
    const ssize_t sent = ::write(fd_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0 && errno == EPIPE) co_return fail(Errc::cancelled, "the output has no reader");
    if (sent < 0) co_return io_failure("write", "the output", errno);
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  co_return Result<>{};
}

}  // namespace berth::cli
