#include "http/server/server.hpp"

#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <stdexcept>

namespace berth::http {
namespace {

using http_test::Answer;
using http_test::Client;
using http_test::json_request;
using http_test::request;
using http_test::TestServer;

Task<bj::value> plain_hello(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return bj::value("hello");
}

Task<bj::value> echo_body(core::Call /*call*/, Input<None, None, bj::value> input) {
  co_return input.body;
}

Task<bj::value> broken(core::Call /*call*/, Input<None, None, None> /*input*/) {
  throw std::runtime_error{"the secret reason"};
  co_return bj::value{};
}

Task<Response> page(core::Call /*call*/, Input<None, None, None> /*input*/) {
  Response response{.content_type = "text/html", .body = "<p>"};
  response.headers.emplace_back("X-Odd", "a\r\nSet-Cookie: b");
  co_return response;
}

Task<Response> large(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return Response{.content_type = "text/plain", .body = std::string(3'000'000, 'x')};
}

std::vector<Route> server_routes() {
  constexpr auto open = core::Permission::open;
  return {
      Endpoint<None, None, None, bj::value>{
          .path = "/api/hello", .needs = open, .tag = "test", .says = "Test", .call = plain_hello},
      Endpoint<None, None, bj::value, bj::value>{.verb = Verb::post,
                                                 .path = "/api/echo",
                                                 .needs = open,
                                                 .tag = "test",
                                                 .says = "Test",
                                                 .call = echo_body},
      Endpoint<None, None, bj::value, bj::value>{.verb = Verb::put,
                                                 .path = "/api/echo",
                                                 .needs = open,
                                                 .tag = "test",
                                                 .says = "Test",
                                                 .body_bytes_max = 4000,
                                                 .call = echo_body},
      Endpoint<None, None, None, bj::value>{
          .path = "/api/broken", .needs = open, .tag = "test", .says = "Test", .call = broken},
      Endpoint<None, None, None, Response>{
          .path = "/page", .needs = open, .tag = "test", .says = "Test", .call = page},
      Endpoint<None, None, None, Response>{
          .path = "/large", .needs = open, .tag = "test", .says = "Test", .call = large},
  };
}

class ServerTest : public testing::Test {
 protected:
  Client connect() const { return Client{server_.port()}; }
  Answer ask(std::string_view text) { return client_.ask(text); }
  static std::string code(const Answer& answer) {
    const auto body = parse_json(answer.body);
    return body && body->is_object() ? std::string{body->at("code").as_string()} : answer.body;
  }

  TestServer server_{server_routes(), Limits{.header_bytes_max = 2048, .body_bytes_max = 1000}};
  Client client_{server_.port()};
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  for (int i = 0; i < 3; ++i) {
    const Answer answer = ask(request("GET /api/hello"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "\"hello\"");
    EXPECT_FALSE(answer.headers.contains("connection"));
  }
}

TEST_F(ServerTest, EveryAnswerCarriesTheSecurityFieldsAndNoServerName) {
  for (const char* path : {"/api/hello", "/page", "/nowhere"}) {
    const Answer answer = ask(request(std::string{"GET "} + path));
    EXPECT_EQ(answer.header("x-content-type-options"), "nosniff") << path;
    EXPECT_EQ(answer.header("referrer-policy"), "no-referrer") << path;
    EXPECT_TRUE(answer.header("date").ends_with("GMT")) << path;
    EXPECT_FALSE(answer.headers.contains("server")) << path;
  }
  EXPECT_EQ(ask(request("GET /api/hello")).header("cache-control"), "no-store");
  EXPECT_EQ(ask(request("GET /page")).header("cache-control"), "");
}

TEST_F(ServerTest, AHandlerCannotSmuggleAHeaderField) {
  const Answer answer = ask(request("GET /page"));
  EXPECT_EQ(answer.header("x-odd"), "a  Set-Cookie: b");
  EXPECT_FALSE(answer.headers.contains("set-cookie"));
}

TEST_F(ServerTest, HeadIsGetWithoutItsBody) {
  client_.send(request("HEAD /api/hello"));
  const Answer answer = client_.read_answer(Client::Body::absent);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("content-length"), "7");
  EXPECT_EQ(ask(request("GET /api/hello")).body, "\"hello\"") << "a body would stand before it";
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  std::string all;
  for (int i = 0; i < 20; ++i) all += json_request("POST /api/echo", std::to_string(i));
  client_.send(all + request("GET /nowhere") + request("GET /api/hello"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client_.read_answer().body, std::to_string(i));
  EXPECT_EQ(client_.read_answer().status, 404);
  EXPECT_EQ(client_.read_answer().body, "\"hello\"");
}

TEST_F(ServerTest, ARequestMayArriveInAnyPieces) {
  const std::string text =
      json_request("POST /api/echo", R"({"a":[1,2,3]})") + request("GET /api/hello");
  for (const char c : text) ASSERT_TRUE(client_.send({&c, 1}));
  EXPECT_EQ(client_.read_answer().body, R"({"a":[1,2,3]})");
  EXPECT_EQ(client_.read_answer().body, "\"hello\"");
}

TEST_F(ServerTest, AChunkedBodyIsPutTogether) {
  const std::string head =
      request("POST /api/echo", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
  EXPECT_EQ(ask(head + "3\r\n\"ab\r\n2\r\nc\"\r\n0\r\n\r\n").body, "\"abc\"");
  EXPECT_EQ(ask(request("GET /api/hello")).status, 200);
}

TEST_F(ServerTest, AClientThatAsksIsToldToContinue) {
  const std::string fields =
      "Content-Type: application/json\r\nContent-Length: 4\r\nExpect: 100-continue\r\n";
  client_.send(request("POST /api/echo", fields));
  EXPECT_EQ(client_.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(ask("true").body, "true");
}

TEST_F(ServerTest, AClientThatAsksIsNotToldToContinueWithWhatWillBeRefused) {
  client_.send(request("POST /api/echo", "Content-Length: 1001\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client_.read_answer().status, 413);
}

TEST_F(ServerTest, HTTP10IsAnsweredAndClosedUnlessAskedOtherwise) {
  EXPECT_EQ(ask("GET /api/hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("connection"),
            "keep-alive");
  client_.send("GET /api/hello HTTP/1.0\r\n\r\n");
  const std::string all = client_.read_all();
  EXPECT_TRUE(all.starts_with("HTTP/1.0 200 OK\r\n")) << all;
  EXPECT_TRUE(all.ends_with("\"hello\"")) << all;
}

TEST_F(ServerTest, ConnectionCloseIsHonoured) {
  const Answer answer = ask(request("GET /api/hello", "Connection: close\r\n"));
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(client_.closed_by_server());
}

TEST_F(ServerTest, AnUnknownPathIs404AndAnUnknownMethodIs405) {
  EXPECT_EQ(code(ask(request("GET /nowhere"))), "route_not_found");
  for (const char* method : {"DELETE", "OPTIONS", "BREW"}) {
    const Answer answer = ask(request(std::string{method} + " /api/echo"));
    EXPECT_EQ(code(answer), "method_not_allowed") << method;
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_EQ(answer.header("allow"), "POST, PUT") << method;
  }
}

TEST_F(ServerTest, ABodyIsLimitedByItsRoute) {
  const std::string body = "\"" + std::string(2000, 'x') + "\"";
  EXPECT_EQ(connect().ask(json_request("PUT /api/echo", body)).body, body);
  Client refused = connect();
  const Answer answer = refused.ask(json_request("POST /api/echo", body));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(refused.send(std::string(100'000, 'x'))) << "the answer must not be lost to a reset";
  refused.end_of_sending();
  EXPECT_TRUE(refused.closed_by_server());
}

TEST_F(ServerTest, AHeaderThatIsTooLongIs431) {
  EXPECT_EQ(ask(request("GET /api/hello", "X: " + std::string(3000, 'x') + "\r\n")).status, 431);
  EXPECT_EQ(connect().ask("GET /" + std::string(5000, 'x')).status, 431);
}

TEST_F(ServerTest, WhatIsNoHTTPIs400AndCloses) {
  for (const char* text :
       {"\x16\x03\x01 hello\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    EXPECT_EQ(connect().ask(text).status, 400) << text;
  }
}

TEST_F(ServerTest, WhatFollowsARefusedRequestIsNotRead) {
  client_.send(
      "POST /api/echo HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\nTransfer-Encoding: chunked\r\n"
      "\r\n0\r\n\r\nGET /api/hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client_.read_answer().status, 400);
  client_.end_of_sending();
  EXPECT_TRUE(client_.closed_by_server());
}

TEST_F(ServerTest, ARequestThatEndsInTheMiddleIs400) {
  client_.send("GET /api/hello HTTP/1.1\r\nHost:");
  client_.end_of_sending();
  EXPECT_EQ(client_.read_answer().status, 400);
}

TEST_F(ServerTest, AHandlerThatThrowsIs500AndTheConnectionGoesOn) {
  const Answer answer = ask(request("GET /api/broken", "X-Request-Id: r-1\r\n"));
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(code(answer), "bug");
  EXPECT_FALSE(answer.body.contains("secret reason"));
  EXPECT_TRUE(answer.body.contains("r-1"));
  EXPECT_EQ(ask(request("GET /api/hello")).status, 200);
}

TEST_F(ServerTest, ALargeAnswerArrivesWhole) {
  const Answer answer = ask(request("GET /large"));
  EXPECT_EQ(answer.body.size(), 3'000'000U);
  EXPECT_EQ(ask(request("GET /api/hello")).status, 200);
}

TEST_F(ServerTest, TheObserverSeesThePatternTheVerbAndTheStatus) {
  ask(json_request("POST /api/echo", "1"));
  server_.stop(std::chrono::milliseconds{100});
  EXPECT_EQ(server_.observer.last, "post /api/echo 200");
  EXPECT_EQ(server_.observer.connections, 0U);
}

TEST(Listen, AnAddressThatIsTakenOrIsNoneIsAnErrorWithARemedy) {
  const TestServer other{{}};
  http_test::TestGate gate;
  http_test::TestObserver observer;
  asio::io_context loop;
  const auto listen = [&](std::string host, unsigned short port) {
    return Server{loop, {.host = std::move(host), .port = port}, {}, gate, observer}.listen();
  };
  for (const auto& refused :
       {listen("127.0.0.1", other.port()), listen("berth.example", 0), listen("192.0.2.1", 0)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::listen_failed);
    EXPECT_FALSE(refused.error().remedy.empty()) << refused.error().message;
  }
  EXPECT_TRUE(listen("localhost", 0));
  EXPECT_TRUE(listen("127.0.0.1", 0));
}

}  // namespace
}  // namespace berth::http
