#include "places/linux/inside.hpp"

#include "base/async/offload.hpp"
#include "base/files.hpp"
#include "files/beneath.hpp"
#include "keeper/protocol/client.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace berth::places {
namespace {

using keeper::LoopbackFamily;

// On a loopback a connection is made at once, or the listener's backlog is full.
constexpr std::chrono::seconds accept_limit{5};

Result<Fd> begin_dial(const std::string& keeper_folder, std::uint16_t port, LoopbackFamily family) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  return keeper::KeeperClient{std::move(socket)}.dial(port, family);
}

std::unexpected<Error> unreachable(std::uint16_t port, const std::string& why) {
  return fail(Errc::port_unreachable, "port " + std::to_string(port) + " of the sandbox: " + why,
              "start what listens on 127.0.0.1 or ::1 there first; `berth exec LEASE -- ss -tln` "
              "lists what does");
}

// Returns when the connection is made or refused; the result is the kernel's error number.
Task<int> outcome_of(int socket) {
  using namespace asio::experimental::awaitable_operators;
  const auto executor = co_await asio::this_coro::executor;
  asio::posix::stream_descriptor watched{executor, ::fcntl(socket, F_DUPFD_CLOEXEC, 0)};
  asio::steady_timer limit{executor, accept_limit};
  const auto ended = co_await (watched.async_wait(asio::posix::stream_descriptor::wait_write,
                                                  asio::as_tuple(asio::use_awaitable)) ||
                               limit.async_wait(asio::as_tuple(asio::use_awaitable)));
  if (ended.index() == 1) co_return ETIMEDOUT;
  int error_number = 0;
  socklen_t size = sizeof error_number;
  if (::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error_number, &size) != 0) co_return errno;
  co_return error_number;
}

}  // namespace

Result<> expect_folder_inside(const std::string& keeper_folder, const std::string& path) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  BERTH_TRY(const Fd root, keeper::KeeperClient{std::move(socket)}.root());
  // Follows the sandbox's links, which lead to the same places as for its commands.
  const Fd found{
      files::open_beneath(root.get(), path, O_PATH | O_DIRECTORY, files::Links::as_inside)};
  if (found && path.starts_with('/')) return {};
  return fail(Errc::working_directory_missing,
              "working directory " + path + ": is not a directory of the sandbox",
              "name one that its image has, or leave it out");
}

Result<FileRoot> files_inside(const std::string& keeper_folder, const InsideUser& user) {
  BERTH_TRY(Fd socket, keeper::connect_keeper(keeper_folder));
  BERTH_TRY(Fd root, keeper::KeeperClient{std::move(socket)}.root());
  FileRoot::User outside{.uid = ::geteuid(), .gid = ::getegid()};
  if (keeper::sandbox::standing_here() == keeper::sandbox::Standing::root) {
    struct stat status{};
    if (::fstat(root.get(), &status) != 0)
      return io_failure("look at", "the sandbox's root", errno);
    // The owner is one of the sandbox's ids, whose range begins at a multiple of this.
    const uid_t first = status.st_uid - status.st_uid % keeper::sandbox::plan_limits::ids;
    // A sandbox's files never belong to a host user. If one appears to, it must not gain that
    // user's rights.
    if (first == 0) {
      return fail(Errc::path_refused, "the root of the sandbox does not belong to it");
    }
    outside = {.uid = first + user.uid, .gid = first + user.gid};
  }
  return FileRoot{.folder = std::move(root), .user = outside, .mounts = FileRoot::Mounts::entered};
}

Task<Fd> dial_inside(asio::thread_pool& pool, std::string keeper_folder, std::uint16_t port) {
  for (const LoopbackFamily family : {LoopbackFamily::v4, LoopbackFamily::v6}) {
    const auto begin = [keeper_folder, port, family] {
      return begin_dial(keeper_folder, port, family);
    };
    Result<Fd> socket = co_await offload(pool, begin);
    // Without IPv6 in the kernel there is nothing more to try or to report.
    if (!socket && socket.error().code != Errc::port_unreachable) co_return socket;
    if (!socket) continue;
    BERTH_CO_TRY(const int error_number, co_await outcome_of(socket->get()));
    if (error_number == ETIMEDOUT) {
      co_return unreachable(port, "the process that listens there accepts no connection");
    }
    if (error_number != 0) continue;
    const int on = 1;
    ::setsockopt(socket->get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    co_return socket;
  }
  co_return unreachable(port, "no process listens there");
}

}  // namespace berth::places
