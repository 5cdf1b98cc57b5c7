#include "cli/run/port_forward.hpp"

#include "base/async/task_group.hpp"
#include "cli/print/printer.hpp"
#include "cli/run/socket.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <csignal>
#include <ostream>
#include <vector>

namespace berth::cli {
namespace {

using asio::ip::tcp;
constexpr auto as_forward_pair = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t piece_bytes = 64UL * 1024;
constexpr std::size_t connections_max = 128;

// A binary message holds bytes of the connection; an empty one is the end of its sender's data.
Task<> carry_in(tcp::socket& local, Socket& remote) {
  std::vector<char> piece(piece_bytes);
  while (true) {
    const auto [error, size] = co_await local.async_read_some(asio::buffer(piece), as_forward_pair);
    if (error && error != asio::error::eof) co_return Result<>{};
    BERTH_CO_DO(co_await remote.send_binary({piece.data(), error ? 0 : size}));
    if (error) break;
  }
  // The other direction ends the connection.
  asio::steady_timer never{local.get_executor(), asio::steady_timer::time_point::max()};
  co_await never.async_wait(as_forward_pair);
  co_return Result<>{};
}

Task<> carry_out(tcp::socket& local, Socket& remote) {
  while (true) {
    BERTH_CO_TRY(const SocketMessage message, co_await remote.receive());
    if (message.bytes.empty()) co_return Result<>{};
    const auto [error, size] =
        co_await asio::async_write(local, asio::buffer(message.bytes), as_forward_pair);
    if (error) co_return Result<>{};
  }
}

// Not 127.0.0.1, where this server's page may be: a browser sends a host's cookies to all its
// ports, and the program in the sandbox would get the operator's key.
constexpr const char* local_address = "127.0.0.2";

class PortForward {
 public:
  PortForward(const Client& server, Console& console, ForwardOptions request)
      : server_(server), console_(console), request_(std::move(request)) {}

  Result<int> run() {
    BERTH_TRY(const std::uint16_t port, listen());
    console_.out << "http://" << local_address << ":" << port << "\n" << std::flush;
    if (!request_.quiet) {
      console_.err << "forwards to port " << request_.port << " of the sandbox; Ctrl-C ends\n";
    }
    life_.start("forward", life());
    loop_.run();
    return signal_;
  }

 private:
  Result<std::uint16_t> listen() {
    const tcp::endpoint at{asio::ip::make_address_v4(local_address), request_.local_port};
    boost::system::error_code error;
    acceptor_.open(at.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address{true}, error);
    if (!error) acceptor_.bind(at, error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return acceptor_.local_endpoint().port();
    return fail(Errc::bad_request,
                std::string{local_address} + ":" + std::to_string(request_.local_port) + ": " +
                    error.message(),
                "choose another port with --listen, or leave it out");
  }

  Task<> life() {
    connections_.start("accept", accept());
    const auto [error, number] = co_await signals_.async_wait(as_forward_pair);
    signal_ = error ? SIGINT : number;
    acceptor_.close();
    co_return co_await connections_.stop();
  }

  Task<> accept() {
    while (acceptor_.is_open()) {
      auto [error, local] = co_await acceptor_.async_accept(as_forward_pair);
      if (error == asio::error::operation_aborted) break;
      // Connections over the limit are closed at once.
      if (error || connections_.size() > connections_max) continue;
      connections_.start("forward", carry(std::move(local)));
    }
    co_return Result<>{};
  }

  Task<> carry(tcp::socket local) {
    using namespace asio::experimental::awaitable_operators;
    const std::string path =
        "/api/environment-leases/" + request_.lease_id + "/tcp/" + std::to_string(request_.port);
    auto remote = co_await open_socket(server_.server(), server_.token(), path);
    if (!remote) {
      if (!request_.quiet) console_.err << "berth: " << printable(remote.error().message) << "\n";
      co_return Result<>{};
    }
    co_await (carry_in(local, **remote) || carry_out(local, **remote));
    co_await (*remote)->close();
    co_return Result<>{};
  }

  const Client& server_;
  Console& console_;
  ForwardOptions request_;
  asio::io_context loop_{1};
  asio::signal_set signals_{loop_, SIGINT, SIGTERM, SIGHUP};
  tcp::acceptor acceptor_{loop_};
  int signal_ = SIGINT;
  TaskGroup life_{loop_.get_executor()};
  TaskGroup connections_{loop_.get_executor()};
};

}  // namespace

Result<int> forward_port(const Client& server, Console& console, ForwardOptions request) {
  return PortForward{server, console, std::move(request)}.run();
}

}  // namespace berth::cli
