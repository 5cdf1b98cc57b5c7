#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::http {
namespace {

using http_test::Client;
using http_test::request;
using http_test::TestServer;
using std::chrono::milliseconds;
using SocketInput = Input<None, None, None>;

Task<> echo_socket(core::Call /*call*/, SocketInput /*input*/, Socket& socket) {
  while (true) {
    auto message = co_await socket.receive();
    if (!message) co_return std::unexpected(message.error());
    if (!*message) co_return Result<>{};
    BERTH_CO_DO(co_await socket.send(**std::move(message)));
  }
}

Task<> refuse_socket(core::Call /*call*/, SocketInput /*input*/, Socket& /*socket*/) {
  co_return fail(Errc::lease_not_found, "lease 7: is not there");
}

Task<> socket_fails_late(core::Call /*call*/, SocketInput /*input*/, Socket& socket) {
  BERTH_CO_DO(co_await socket.send({.bytes = "hello"}));
  co_return fail(Errc::store_failed, "the store is gone");
}

Task<> leaves(core::Call /*call*/, SocketInput /*input*/, Socket& socket) {
  co_return co_await socket.close(CloseCode::policy_error, "not now");
}

Task<> greet_and_wait(Socket& socket) {
  BERTH_CO_DO(co_await socket.send({.bytes = "hello"}));
  asio::steady_timer never{co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max()};
  co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

// Both directions begin before the upgrade is answered.
Task<> talks_at_once(core::Call /*call*/, SocketInput /*input*/, Socket& socket) {
  using namespace asio::experimental::awaitable_operators;
  const auto ended = co_await (echo_socket({}, {}, socket) || greet_and_wait(socket));
  co_return std::visit([](const Result<>& first) { return first; }, ended);
}

std::vector<Route> socket_routes() {
  constexpr auto open = core::Permission::open;
  return {
      SocketEndpoint<None, None>{
          .path = "/echo", .needs = open, .tag = "test", .says = "Test", .call = echo_socket},
      SocketEndpoint<None, None>{
          .path = "/refuse", .needs = open, .tag = "test", .says = "Test", .call = refuse_socket},
      SocketEndpoint<None, None>{.path = "/fails",
                                 .needs = open,
                                 .tag = "test",
                                 .says = "Test",
                                 .call = socket_fails_late},
      SocketEndpoint<None, None>{
          .path = "/both", .needs = open, .tag = "test", .says = "Test", .call = talks_at_once},
      SocketEndpoint<None, None>{
          .path = "/leaves", .needs = open, .tag = "test", .says = "Test", .call = leaves},
  };
}

std::string upgrade(std::string_view path, std::string_view key = "lasting") {
  return request("GET " + std::string{path},
                 "Authorization: Bearer " + std::string{key} +
                     "\r\n"
                     "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n");
}

enum Opcode { continuation = 0, text = 1, binary = 2, close_frame = 8, ping = 9, pong = 10 };
enum class Fin { last, more };

// A client's frame, masked as RFC 6455 requires.
std::string frame(Opcode opcode, std::string_view payload, Fin fin = Fin::last) {
  std::string out;
  out += static_cast<char>((fin == Fin::last ? 0x80 : 0) | opcode);
  if (payload.size() < 126) {
    out += static_cast<char>(0x80 | payload.size());
  } else {
    out += static_cast<char>(0x80 | 126);
    out += static_cast<char>(payload.size() >> 8U);
    out += static_cast<char>(payload.size() & 0xffU);
  }
  const std::string mask = "\x11\x22\x33\x44";
  out += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) {
    out += static_cast<char>(payload[i] ^ mask[i % 4]);
  }
  return out;
}

struct Frame {
  int opcode = -1;  // -1: the connection has ended
  std::string payload;
};

Frame read_frame(Client& client) {
  const std::string head = client.read_bytes(2);
  if (head.size() < 2) return {};
  std::size_t size = static_cast<unsigned char>(head[1]);
  if (size == 126) {
    const std::string more = client.read_bytes(2);
    size = static_cast<unsigned char>(more[0]) * 256U + static_cast<unsigned char>(more[1]);
  }
  return {head[0] & 0x0f, client.read_bytes(size)};
}

int close_code(const Frame& last) {
  if (last.opcode != close_frame || last.payload.size() < 2) return 0;
  return static_cast<unsigned char>(last.payload[0]) * 256 +
         static_cast<unsigned char>(last.payload[1]);
}

class SocketTest : public testing::Test {
 protected:
  Client open(std::string_view path, std::string_view key = "lasting") {
    Client client{server_.port()};
    client.send(upgrade(path, key));
    head_ = client.read_until("\r\n\r\n");
    EXPECT_TRUE(head_.starts_with("HTTP/1.1 101")) << head_;
    return client;
  }

  TestServer server_{socket_routes(), Limits{.socket_message_bytes_max = 2000,
                                             .sweep_interval = milliseconds{10},
                                             .rights_interval = milliseconds{10}}};
  std::string head_;
};

TEST_F(SocketTest, TheUpgradeIsAnsweredAsTheStandardSaysAndWithoutAVersion) {
  open("/echo");
  EXPECT_TRUE(head_.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")) << head_;
  EXPECT_TRUE(head_.contains("X-Request-Id: ")) << head_;
  EXPECT_FALSE(head_.contains("Beast")) << head_;
}

TEST_F(SocketTest, EndsWithTheKeyThatOpenedItAndLeavesOthersAlone) {
  Client lasting = open("/echo", "lasting");
  Client fleeting = open("/echo", "fleeting");
  fleeting.send(frame(text, "one"));
  EXPECT_EQ(read_frame(fleeting).payload, "one");
  server_.revoke();
  EXPECT_EQ(read_frame(fleeting).opcode, -1);
  lasting.send(frame(text, "two"));
  EXPECT_EQ(read_frame(lasting).payload, "two");
}

TEST_F(SocketTest, AHandlerMayBeginBothDirectionsAtOnce) {
  for (int round = 0; round < 20; ++round) {
    Client client = open("/both");
    client.send(frame(text, "one"));
    std::vector<std::string> heard{read_frame(client).payload, read_frame(client).payload};
    std::ranges::sort(heard);
    EXPECT_EQ(heard, (std::vector<std::string>{"hello", "one"}));
  }
}

TEST_F(SocketTest, MessagesComeBackWithTheirKind) {
  Client client = open("/echo");
  client.send(frame(text, "hello"));
  Frame answer = read_frame(client);
  EXPECT_EQ(answer.opcode, text);
  EXPECT_EQ(answer.payload, "hello");
  const std::string bytes(1000, '\xfe');
  client.send(frame(binary, bytes));
  answer = read_frame(client);
  EXPECT_EQ(answer.opcode, binary);
  EXPECT_EQ(answer.payload, bytes);
}

TEST_F(SocketTest, FragmentsAreOneMessageWithPingsInBetween) {
  Client client = open("/echo");
  client.send(frame(text, "one ", Fin::more) + frame(ping, "are you there?") +
              frame(continuation, "two ", Fin::more) + frame(continuation, "three"));
  Frame answer = read_frame(client);
  EXPECT_EQ(answer.opcode, pong);
  EXPECT_EQ(answer.payload, "are you there?");
  answer = read_frame(client);
  EXPECT_EQ(answer.opcode, text);
  EXPECT_EQ(answer.payload, "one two three");
}

TEST_F(SocketTest, AClientsCloseIsAnsweredAndEndsTheHandler) {
  Client client = open("/echo");
  client.send(frame(close_frame, "\x03\xe8"));
  EXPECT_EQ(close_code(read_frame(client)), 1000);
  EXPECT_EQ(read_frame(client).opcode, -1);
}

TEST_F(SocketTest, AMessageThatIsTooLongOrNoTextEndsTheSocket) {
  Client large = open("/echo");
  large.send(frame(text, std::string(3000, 'x')));
  EXPECT_EQ(close_code(read_frame(large)), 1009);
  Client broken = open("/echo");
  broken.send(frame(text, "\xff\xfe"));
  EXPECT_EQ(close_code(read_frame(broken)), 1007);
}

TEST_F(SocketTest, AnErrorBeforeTheUpgradeIsAPlainAnswer) {
  Client client{server_.port()};
  EXPECT_EQ(client.ask(upgrade("/refuse")).status, 404);
  EXPECT_EQ(client.ask(upgrade("/echo?x=1")).status, 400) << "and so is wrong input";
  EXPECT_EQ(client.ask(request("GET /echo")).status, 400) << "and a request for no upgrade";
}

TEST_F(SocketTest, ALaterErrorIsToldByTheCloseCode) {
  Client client = open("/fails");
  EXPECT_EQ(read_frame(client).payload, "hello");
  const Frame last = read_frame(client);
  EXPECT_EQ(close_code(last), 1011);
  EXPECT_EQ(last.payload.substr(2), "store_failed");
}

TEST_F(SocketTest, AHandlerMayCloseWithAReason) {
  Client client = open("/leaves");
  const Frame last = read_frame(client);
  EXPECT_EQ(close_code(last), 1008);
  EXPECT_EQ(last.payload.substr(2), "not now");
}

TEST_F(SocketTest, RefusesTheSocketThatIsOneTooManyForItsKey) {
  TestServer server{socket_routes(), Limits{.streams_of_caller_max = 1}};
  Client first{server.port()};
  first.send(upgrade("/echo", "viewer-11"));
  EXPECT_TRUE(first.read_until("\r\n\r\n").starts_with("HTTP/1.1 101"));
  Client second{server.port()};
  const auto refused = second.ask(upgrade("/echo", "viewer-11"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.body.contains("\"code\":\"overloaded\"")) << refused.body;
}

TEST_F(SocketTest, IsClosedWithTryAgainLaterWhenANewcomerNeedsItsPlace) {
  TestServer server{socket_routes(),
                    Limits{.connections_max = 2, .sweep_interval = milliseconds{10}}};
  Client oldest{server.port()};
  oldest.send(upgrade("/echo", "viewer-11"));
  oldest.read_until("\r\n\r\n");
  Client other{server.port()};
  other.send(upgrade("/echo", "viewer-11"));
  other.read_until("\r\n\r\n");
  Client newcomer{server.port()};
  EXPECT_EQ(newcomer.ask(request("GET /nothing")).status, 404);
  EXPECT_EQ(close_code(read_frame(oldest)), 1013);
  other.send(frame(text, "still here"));
  EXPECT_EQ(read_frame(other).payload, "still here");
}

TEST_F(SocketTest, ADrainingServerSaysThatItGoesAway) {
  Client client = open("/echo");
  client.send(frame(text, "x"));
  EXPECT_EQ(read_frame(client).payload, "x");
  server_.begin_drain(milliseconds{10'000});
  EXPECT_EQ(close_code(read_frame(client)), 1001);
  client.send(frame(close_frame, "\x03\xe9"));
  EXPECT_EQ(read_frame(client).opcode, -1);
  client.close();
  server_.join();
}

}  // namespace
}  // namespace berth::http
