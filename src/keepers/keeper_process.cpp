#include "keepers/keeper_process.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace berth::keepers {
namespace {

Result<Fd> open_process(pid_t pid) {
  Fd process{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!process) return io_failure("open process", std::to_string(pid), errno);
  return process;
}

// Compared after the process is opened: from then on its pid cannot be reused.
Result<Fd> hold(const keeper::ProcessIdentity& identity) {
  BERTH_TRY(Fd process, open_process(identity.pid));
  BERTH_TRY(const keeper::ProcessIdentity now, keeper::identity_of(identity.pid));
  if (now.start_ticks == identity.start_ticks && now.boot_id == identity.boot_id) return process;
  return fail(Errc::keeper_unreachable,
              "process " + std::to_string(identity.pid) + " is another's");
}

}  // namespace

Task<> reap(asio::any_io_executor executor, pid_t child) {
  BERTH_CO_TRY(Fd process, open_process(child));
  asio::posix::stream_descriptor ended{executor, process.release()};
  while (true) {
    const auto [error] = co_await ended.async_wait(asio::posix::descriptor_base::wait_read,
                                                   asio::as_tuple(asio::use_awaitable));
    // The event may come early; only waitpid shows that the process has ended.
    if (error || ::waitpid(child, nullptr, WNOHANG) != 0) co_return Result<>{};
  }
}

bool has_ended(const keeper::ProcessIdentity& identity, std::chrono::milliseconds limit) {
  const Result<Fd> process = hold(identity);
  if (!process) return true;
  pollfd ended{process->get(), POLLIN, 0};
  return ::poll(&ended, 1, static_cast<int>(limit.count())) == 1;
}

Result<> kill_keeper(const keeper::ProcessIdentity& identity) {
  const Result<Fd> process = hold(identity);
  if (!process) return {};
  if (::syscall(SYS_pidfd_send_signal, process->get(), SIGKILL, nullptr, 0) != 0 &&
      errno != ESRCH) {
    return io_failure("kill keeper", std::to_string(identity.pid), errno);
  }
  return {};
}

}  // namespace berth::keepers
