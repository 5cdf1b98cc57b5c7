#include "engine/leases/leases.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>

#include <vector>

// Ports of leased sandboxes: HTTP by path, anything else over a WebSocket.
namespace berth::http {
namespace {

constexpr std::size_t piece_bytes = 64UL * 1024;
constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);
constexpr Bounds ports{.usual = 0, .least = 1, .most = 65535};

struct PortPath {
  core::LeaseId lease;
  std::int64_t port;
};
BOOST_DESCRIBE_STRUCT(PortPath, (), (lease, port))

using SocketInput = Input<PortPath, None, None>;

Task<Fd> dial(engine::Leases& leases, core::Call call, PortPath path) {
  BERTH_CO_TRY(const std::int64_t port, bounded("port", path.port, ports));
  co_return co_await leases.dial(call, path.lease, static_cast<std::uint16_t>(port));
}

// A binary message holds bytes of the connection; an empty one is the end of its sender's data.
class RawPort {
 public:
  RawPort(asio::any_io_executor executor, Fd connection, Socket& socket)
      : connection_(std::move(executor), connection.release()), socket_(socket) {}

  Task<> serve() {
    using namespace asio::experimental::awaitable_operators;
    const auto ended = co_await (take_from_client() || take_from_port());
    co_return std::visit([](const Result<>& first) { return first; }, ended);
  }

 private:
  // Ends when the client has disconnected.
  Task<> take_from_client() {
    while (true) {
      BERTH_CO_TRY(const std::optional<Message> message, co_await socket_.receive());
      if (!message) co_return Result<>{};
      if (message->kind != Message::Kind::binary) {
        co_return fail(Errc::validation_failed, "the message is text",
                       "send the bytes of the connection as binary messages");
      }
      if (message->bytes.empty()) {
        ::shutdown(connection_.native_handle(), SHUT_WR);
        continue;
      }
      // A server that no longer reads may still send data.
      co_await asio::async_write(connection_, asio::buffer(message->bytes), as_pair);
    }
  }

  // Ends when the port has sent everything.
  Task<> take_from_port() {
    std::vector<char> piece(piece_bytes);
    while (true) {
      const auto [error, size] = co_await connection_.async_read_some(asio::buffer(piece), as_pair);
      if (error) break;
      Message message{.kind = Message::Kind::binary, .bytes = {piece.data(), size}};
      BERTH_CO_DO(co_await socket_.send(std::move(message)));
    }
    BERTH_CO_DO(co_await socket_.send({.kind = Message::Kind::binary}));
    co_return co_await socket_.close(CloseCode::normal, "");
  }

  asio::posix::stream_descriptor connection_;
  Socket& socket_;
};

Task<> serve_raw(engine::Leases& leases, core::Call call, SocketInput in, Socket& socket) {
  // Before the upgrade is answered, so that a port without a listener is a plain 502.
  BERTH_CO_TRY(Fd connection, co_await dial(leases, std::move(call), in.path));
  RawPort port{co_await asio::this_coro::executor, std::move(connection), socket};
  co_return co_await port.serve();
}

}  // namespace

std::vector<Route> lease_port_routes(engine::Leases& leases) {
  return {RelayEndpoint<PortPath>{
              .path = "/api/environment-leases/{lease}/ports/{port}/*",
              .needs = core::Permission::company_operate,
              .tag = "ports",
              .says = "Pass a request of any method, or a WebSocket, on to a port of the sandbox "
                      "that a lease holds",
              .call = [&leases](core::Call call,
                                PortPath path) { return dial(leases, std::move(call), path); }},
          SocketEndpoint<PortPath, None>{
              .path = "/api/environment-leases/{lease}/tcp/{port}",
              .needs = core::Permission::company_operate,
              .tag = "ports",
              .says = "A connection to a port of the sandbox that a lease holds: binary messages "
                      "carry its bytes, an empty one ends what its sender says",
              .call = [&leases](core::Call call, SocketInput in, Socket& socket) {
                return serve_raw(leases, std::move(call), std::move(in), socket);
              }}};
}

}  // namespace berth::http
