#include "http/server/server.hpp"

#include "base/async/task_group.hpp"
#include "base/log.hpp"
#include "http/server/peer_owner.hpp"
#include "http/server/serve.hpp"
#include "http/server/tls.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <sys/resource.h>

namespace berth::http {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds accept_pause{100};

// Every connection is a file descriptor, and the usual soft limit of 1024 is for programs that use
// select().
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Client connections leave descriptors for the rest of the server: the store, keepers and plugins.
void leave_descriptors(Limits& limits) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  constexpr std::size_t kept_max = 1024;
  const std::size_t files = limit.rlim_cur;
  const std::size_t most = files - std::min(files / 4, kept_max);
  if (limits.connections_max <= most) return;
  log::warn("server.fewer_connections", {{"connections_max", limits.connections_max},
                                         {"effective", most},
                                         {"open_files_max", files},
                                         {"remedy", "raise LimitNOFILE"}});
  limits.connections_max = most;
}

Result<asio::ip::address> parse_host(std::string_view host) {
  if (host == "localhost") return asio::ip::address_v4::loopback();
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  error_code error;
  auto address = asio::ip::make_address(std::string{host}, error);
  if (!error) return address;
  return fail(Errc::listen_failed,
              "cannot listen on '" + std::string{host} + "': is not an address",
              "give an IPv4 or IPv6 address, such as 127.0.0.1, or localhost");
}

Error listen_error(const std::string& place, const error_code& error) {
  std::string remedy = "choose another address with --listen HOST:PORT";
  if (error == asio::error::address_in_use) {
    remedy = "stop the program that has this port, or choose another with --listen HOST:PORT";
  } else if (error == asio::error::access_denied) {
    remedy = "ports below 1024 need the capability CAP_NET_BIND_SERVICE; choose a higher port";
  } else if (error == boost::system::errc::address_not_available) {
    remedy = "this machine does not have that address; 'ip address' lists those it has";
  }
  return Error{Errc::listen_failed, "cannot listen on " + place + ": " + error.message(),
               std::move(remedy)};
}

bool lacks_descriptors(const error_code& error) {
  return error == asio::error::no_descriptors ||
         error == boost::system::errc::too_many_files_open_in_system;
}

}  // namespace

struct Server::Parts {
  Parts(asio::io_context& io, ServerOptions given, std::vector<Route> routes, Gate& gate,
        Observer& observer)
      : loop(io),
        options(std::move(given)),
        router(std::move(routes)),
        dispatcher(router, gate, options.limits),
        traffic(loop.get_executor(), options.limits, observer),
        acceptor(loop),
        retry(loop),
        sessions(loop.get_executor()),
        background(loop.get_executor()) {}

  Task<> sweep();
  Task<> pause_after(error_code error);
  void welcome(TcpSocket socket);
  std::optional<unsigned> user_of(const TcpSocket& socket);

  asio::io_context& loop;
  ServerOptions options;
  Router router;
  Dispatcher dispatcher;
  Traffic traffic;
  TcpAcceptor acceptor;
  std::optional<asio::ssl::context> tls;
  std::optional<PeerOwner> owners;
  asio::steady_timer retry;
  TaskGroup sessions;
  TaskGroup background;
};

Server::Server(asio::io_context& loop, ServerOptions options, std::vector<Route> routes, Gate& gate,
               Observer& observer)
    : parts_(std::make_unique<Parts>(loop, std::move(options), std::move(routes), gate, observer)) {
}

Server::~Server() = default;

Result<unsigned short> Server::listen() {
  const ServerOptions& options = parts_->options;
  if (options.tls) {
    BERTH_TRY(parts_->tls, make_tls_context(*options.tls));
  }
  BERTH_TRY(const asio::ip::address address, parse_host(options.host));
  raise_file_limit();
  leave_descriptors(parts_->options.limits);
  if (options.asks_for_peer_user) parts_->owners.emplace();
  const std::string place = options.host + ":" + std::to_string(options.port);
  const tcp::endpoint endpoint{address, options.port};
  TcpAcceptor& acceptor = parts_->acceptor;
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return std::unexpected(listen_error(place, error));
  return acceptor.local_endpoint().port();
}

Task<> Server::accept() {
  Parts& parts = *parts_;
  parts.background.start("http.sweep", parts.sweep());
  while (parts.acceptor.is_open()) {
    auto [error, socket] =
        co_await parts.acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted) break;
    if (error) {
      BERTH_CO_DO(co_await parts.pause_after(error));
    } else {
      parts.welcome(std::move(socket));
    }
  }
  co_return Result<>{};
}

void Server::Parts::welcome(TcpSocket socket) {
  // When every place has a running request, the new connection is refused.
  const std::optional<Place> place = traffic.make_room();
  if (!place) return;
  const Arrival arrival{.place = *place, .user = user_of(socket)};
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  sessions.start("http.session",
                 tls ? serve_tls(std::move(socket), *tls, arrival, dispatcher, traffic)
                     : serve_plain(std::move(socket), arrival, dispatcher, traffic));
}

// Looked up at once, because the user is known only while the other end is open.
std::optional<unsigned> Server::Parts::user_of(const TcpSocket& socket) {
  if (!owners) return std::nullopt;
  error_code gone;
  const tcp::endpoint peer = socket.remote_endpoint(gone);
  const tcp::endpoint ours = gone ? tcp::endpoint{} : socket.local_endpoint(gone);
  return gone ? std::nullopt : owners->find(peer, ours);
}

// A client that has disconnected costs nothing. Without free descriptors the kernel would report
// the same connection again forever, so a waiting client is evicted.
Task<> Server::Parts::pause_after(error_code error) {
  if (error == asio::error::connection_aborted) co_return Result<>{};
  log::warn("http.accept_failed", {{"error", error.message()}, {"connections", traffic.size()}});
  if (lacks_descriptors(error)) traffic.evict();
  retry.expires_after(accept_pause);
  co_await retry.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

Task<> Server::Parts::sweep() {
  asio::steady_timer tick{loop};
  while (true) {
    tick.expires_after(options.limits.sweep_interval);
    const auto [stopped] = co_await tick.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
    traffic.sweep(std::chrono::steady_clock::now());
  }
}

Task<> Server::drain(std::chrono::milliseconds grace) {
  Parts& parts = *parts_;
  error_code ignored;
  parts.acceptor.close(ignored);
  parts.retry.cancel();
  parts.traffic.drain();
  BERTH_CO_DO(co_await parts.traffic.until_empty(grace));
  parts.traffic.abort_all();
  BERTH_CO_DO(co_await parts.sessions.stop());
  co_return co_await parts.background.stop();
}

}  // namespace berth::http
