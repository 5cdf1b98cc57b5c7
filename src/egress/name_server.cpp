#include "egress/name_server.hpp"

#include "base/files.hpp"
#include "egress/meter.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace berth::egress {
namespace {

using asio::ip::udp;
using boost::system::error_code;

constexpr std::uint64_t queries_per_second = 500;
constexpr std::chrono::milliseconds failure_pause{100};

Result<udp> protocol_of(int fd) {
  int family = 0;
  int type = 0;
  socklen_t size = sizeof family;
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) != 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    return io_failure("look at", "the DNS socket", errno);
  }
  if (type != SOCK_DGRAM) return io_failure("use", "the DNS socket", EINVAL);
  if (family == AF_INET) return udp::v4();
  if (family == AF_INET6) return udp::v6();
  return io_failure("use", "the DNS socket", EAFNOSUPPORT);
}

}  // namespace

Result<> NameServer::listen(Fd socket) {
  BERTH_TRY(const udp protocol, protocol_of(socket.get()));
  Socket& made = sockets_.emplace_back(loop_);
  error_code error;
  made.assign(protocol, socket.get(), error);
  if (error) {
    sockets_.pop_back();
    return io_failure("serve", "the DNS socket", error.value());
  }
  std::ignore = socket.release();  // the new owner closes it
  tasks_.start("egress.names", serve(made));
  return {};
}

Task<> NameServer::serve(Socket& socket) {
  // One byte more than a query may have, so that a longer datagram is not truncated to a valid one.
  std::array<char, dns_query_bytes_max + 1> room{};
  Meter meter{queries_per_second};
  asio::steady_timer timer{loop_};
  while (socket.is_open()) {
    udp::endpoint client;
    const auto [error, size] =
        co_await socket.async_receive_from(asio::buffer(room), client, tuple_awaitable);
    if (!socket.is_open() || error == asio::error::operation_aborted) break;
    std::chrono::nanoseconds pause = failure_pause;
    if (!error) {
      const auto answer = answers_.answer({room.data(), size});
      // A client that has ended loses only its own response.
      if (answer) co_await socket.async_send_to(asio::buffer(*answer), client, tuple_awaitable);
      pause = meter.spend(1, std::chrono::steady_clock::now());
    }
    if (pause.count() == 0) continue;
    timer.expires_after(pause);
    const auto [stopped] = co_await timer.async_wait(tuple_awaitable);
    if (stopped) break;
  }
  co_return Result<>{};
}

Task<> NameServer::stop() {
  error_code ignored;
  for (Socket& socket : sockets_) socket.close(ignored);
  BERTH_CO_DO(co_await tasks_.stop());
  sockets_.clear();
  co_return Result<>{};
}

}  // namespace berth::egress
