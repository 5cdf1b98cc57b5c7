#include "cli/run/socket.hpp"

#include "cli/net/client.hpp"
#include "cli/net/tls.hpp"
#include "cli/version.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>

namespace berth::cli {
namespace {

namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using PlainStream = beast::tcp_stream;
using TlsStream = asio::ssl::stream<beast::tcp_stream>;

constexpr std::chrono::seconds connect_timeout{10};
constexpr std::chrono::seconds silence_timeout{
    60};  // after half of it without data, a ping is sent
constexpr std::size_t message_bytes_max = std::size_t{16} << 20;

std::unexpected<Error> socket_unreachable(const Endpoint& server, const std::string& why) {
  return fail(Errc::server_unreachable, "no Berth server answers at " + server.url() + ": " + why,
              "start it with 'berth serve' or name it with --url");
}

// The server exists, or there would be no connection.
std::unexpected<Error> silent(const Endpoint& server, std::chrono::seconds limit) {
  return fail(Errc::timed_out,
              "the server at " + server.url() + " did not answer within " +
                  std::to_string(limit.count()) + " s",
              "try again, or look at the server's log; if only one sandbox does not answer, remove "
              "it: berth sandbox rm SANDBOX");
}

template <class Stream>
class BeastSocket final : public Socket {
 public:
  BeastSocket(Stream stream, Endpoint server)
      : socket_(std::move(stream)), server_(std::move(server)) {}

  Task<> upgrade(std::string path, const std::optional<Secret>& token,
                 std::chrono::seconds answer_limit) {
    beast::get_lowest_layer(socket_).expires_never();  // the WebSocket has its own timeouts
    socket_.set_option(websocket::stream_base::timeout{
        .handshake_timeout = answer_limit,
        .idle_timeout = silence_timeout,
        .keep_alive_pings = true,
    });
    socket_.read_message_max(message_bytes_max);
    socket_.set_option(websocket::stream_base::decorator([&token](auto& message) {
      if constexpr (std::remove_cvref_t<decltype(message)>::is_request::value) {
        message.set(beast::http::field::user_agent, "berth/" + std::string{version()});
        if (token) {
          message.set(beast::http::field::authorization, "Bearer " + std::string{token->reveal()});
        }
      }
    }));
    websocket::response_type answer;
    const std::string target = server_.prefix + path;
    const std::string host = server_.authority();
    const auto [error] = co_await socket_.async_handshake(answer, host, target, as_pair);
    socket_.set_option(websocket::stream_base::decorator([](auto&) {}));
    if (error == websocket::error::upgrade_declined) {
      co_return std::unexpected(error_of(answer.result_int(), answer.body()));
    }
    if (error == beast::error::timeout) co_return silent(server_, answer_limit);
    if (error) co_return socket_unreachable(server_, error.message());
    co_return Result<>{};
  }

  Task<SocketMessage> receive() override {
    beast::flat_buffer inbox;
    const auto [error, size] = co_await socket_.async_read(inbox, as_pair);
    if (error == beast::error::timeout) co_return silent(server_, silence_timeout);
    if (error) co_return socket_unreachable(server_, reason(error));
    const auto kind =
        socket_.got_binary() ? SocketMessage::Kind::binary : SocketMessage::Kind::text;
    co_return SocketMessage{kind, {static_cast<const char*>(inbox.cdata().data()), inbox.size()}};
  }

  Task<> send(std::string text) override {
    socket_.text(true);
    co_return co_await write(std::move(text));
  }

  Task<> send_binary(std::string bytes) override {
    socket_.binary(true);
    co_return co_await write(std::move(bytes));
  }

  Task<> close() override {
    beast::get_lowest_layer(socket_).expires_after(std::chrono::seconds{2});
    co_await socket_.async_close(websocket::close_code::normal, as_pair);
    co_return Result<>{};
  }

  void drop() override { beast::get_lowest_layer(socket_).close(); }

 private:
  Task<> write(std::string bytes) {
    const auto [error, size] = co_await socket_.async_write(asio::buffer(bytes), as_pair);
    if (error == beast::error::timeout) co_return silent(server_, silence_timeout);
    if (error) co_return socket_unreachable(server_, reason(error));
    co_return Result<>{};
  }

  std::string reason(const boost::system::error_code& error) const {
    if (error != websocket::error::closed) return error.message();
    const auto said = socket_.reason().reason;
    return said.empty() ? "it closed the connection" : std::string{said.data(), said.size()};
  }

  websocket::stream<Stream> socket_;
  Endpoint server_;
};

Task<beast::tcp_stream> connect(const Endpoint& server) {
  const auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver{executor};
  boost::system::error_code failed;
  const auto found = resolver.resolve(server.host, std::to_string(server.port), failed);
  if (failed) co_return socket_unreachable(server, failed.message());
  beast::tcp_stream stream{executor};
  stream.expires_after(connect_timeout);
  const auto [error, at] = co_await stream.async_connect(found, as_pair);
  if (error) co_return socket_unreachable(server, error.message());
  stream.socket().set_option(tcp::no_delay{true}, failed);
  co_return std::move(stream);
}

Task<TlsStream> start_tls(const Endpoint& server, beast::tcp_stream plain) {
  // OpenSSL counts references to a context, so the stream keeps it.
  asio::ssl::context context{asio::ssl::context::tls_client};
  trust_system(context.native_handle());
  TlsStream stream{std::move(plain), context};
  expect_host(stream.native_handle(), server.host);
  const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::client, as_pair);
  if (error) co_return socket_unreachable(server, error.message());
  co_return std::move(stream);
}

template <class Stream>
Task<std::unique_ptr<Socket>> upgraded(const Endpoint& server, const std::optional<Secret>& token,
                                       std::string path, std::chrono::seconds answer_limit,
                                       Stream stream) {
  auto socket = std::make_unique<BeastSocket<Stream>>(std::move(stream), server);
  BERTH_CO_DO(co_await socket->upgrade(std::move(path), token, answer_limit));
  co_return std::unique_ptr<Socket>{std::move(socket)};
}

}  // namespace

Task<std::unique_ptr<Socket>> open_socket(const Endpoint& server,
                                          const std::optional<Secret>& token, std::string path,
                                          std::chrono::seconds answer_limit) {
  BERTH_CO_TRY(beast::tcp_stream plain, co_await connect(server));
  if (!server.tls) {
    co_return co_await upgraded(server, token, std::move(path), answer_limit, std::move(plain));
  }
  BERTH_CO_TRY(TlsStream stream, co_await start_tls(server, std::move(plain)));
  co_return co_await upgraded(server, token, std::move(path), answer_limit, std::move(stream));
}

}  // namespace berth::cli
