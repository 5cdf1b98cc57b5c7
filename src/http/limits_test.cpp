#include "http/limits.hpp"

#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <poll.h>

#include <future>

namespace berth::http {
namespace {

using http_test::Client;
using http_test::json_request;
using http_test::request;
using http_test::TestServer;
using std::chrono::milliseconds;

// A handler that waits until the test releases it.
class Door {
 public:
  Route route(std::string path) {
    return Endpoint<None, None, None, bj::value>{
        .path = std::move(path),
        .needs = core::Permission::open,
        .tag = "test",
        .says = "Test",
        .call = [this](core::Call, Input<None, None, None>) { return wait(); }};
  }
  void until_somebody_waits() { arrived_.get_future().wait(); }
  void let_go(TestServer& server) {
    asio::post(server.loop(), [this] {
      open_ = true;
      bell_->cancel();
    });
  }

 private:
  Task<bj::value> wait() {
    asio::steady_timer bell{co_await asio::this_coro::executor,
                            asio::steady_timer::time_point::max()};
    bell_ = &bell;
    arrived_.set_value();
    while (!open_) co_await bell.async_wait(asio::as_tuple(asio::use_awaitable));
    co_return bj::value("done");
  }

  std::promise<void> arrived_;
  asio::steady_timer* bell_ = nullptr;  // wakes the waiting handler
  bool open_ = false;
};

Task<bj::value> hello(core::Call /*call*/, Input<None, None, bj::value> /*input*/) {
  co_return bj::value("hello");
}

Task<Response> bytes_of(std::size_t count) {
  co_return Response{.content_type = "text/plain", .body = std::string(count, 'x')};
}

std::vector<Route> with_hello(std::vector<Route> routes = {}) {
  routes.push_back(Endpoint<None, None, bj::value, bj::value>{.path = "/hello",
                                                              .needs = core::Permission::open,
                                                              .tag = "test",
                                                              .says = "Test",
                                                              .call = hello});
  return routes;
}

// Long enough that no limit applies by accident, except those that a test sets.
Limits quick_sweeps() {
  return Limits{.sweep_interval = milliseconds{10}};
}

TEST(Limits, AHeaderThatTricklesIsCutOffHoweverSteadyItComes) {
  Limits limits = quick_sweeps();
  limits.header_timeout = milliseconds{300};
  TestServer server{with_hello(), limits};
  Client client{server.port()};
  client.send("GET /hello HTTP/1.1\r\n");
  // A byte every 20 ms, until there is something to read.
  pollfd answered{.fd = client.fd(), .events = POLLIN, .revents = 0};
  while (::poll(&answered, 1, 20) == 0) ASSERT_TRUE(client.send("x"));
  const auto answer = client.read_answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.header("connection"), "close");
}

TEST(Limits, ABodyThatDoesNotComeIs408) {
  Limits limits = quick_sweeps();
  limits.body_timeout = milliseconds{50};
  TestServer server{with_hello(), limits};
  Client client{server.port()};
  EXPECT_EQ(client.ask(request("GET /hello", "Content-Length: 10\r\n") + "12").status, 408);
}

TEST(Limits, AConnectionThatSaysNothingIsClosedWithoutAWord) {
  Limits limits = quick_sweeps();
  limits.header_timeout = limits.idle_timeout = milliseconds{50};
  TestServer server{with_hello(), limits};
  Client silent{server.port()};
  EXPECT_TRUE(silent.closed_by_server());
  Client idle{server.port()};
  EXPECT_EQ(idle.ask(request("GET /hello")).status, 200);
  EXPECT_TRUE(idle.closed_by_server());
}

TEST(Limits, SlowClientsDoNotLockOthersOut) {
  Limits limits = quick_sweeps();
  limits.connections_max = 500;
  TestServer server{with_hello(), limits};
  std::vector<Client> slow;
  for (int i = 0; i < 600; ++i) {
    slow.emplace_back(server.port());
    slow.back().send("GET /hel");
    if (i % 50 == 0) EXPECT_EQ(Client{server.port()}.ask(request("GET /hello")).status, 200) << i;
  }
  for (Client& client : slow) client.send("l");
  EXPECT_EQ(Client{server.port()}.ask(request("GET /hello")).status, 200);
  EXPECT_LE(server.observer.connections, 501U);
}

TEST(Limits, ANewcomerEvictsWhoeverHasWaitedLongestAndNobodyAtWork) {
  Limits limits = quick_sweeps();
  limits.connections_max = 3;
  Door door;
  TestServer server{with_hello({door.route("/door")}), limits};
  Client at_work{server.port()};
  at_work.send(request("GET /door"));
  door.until_somebody_waits();
  Client oldest{server.port()};
  EXPECT_EQ(oldest.ask(request("GET /hello")).status, 200);
  Client newer{server.port()};
  EXPECT_EQ(newer.ask(request("GET /hello")).status, 200);
  Client newcomer{server.port()};
  EXPECT_EQ(newcomer.ask(request("GET /hello")).status, 200);
  EXPECT_TRUE(oldest.closed_by_server());
  EXPECT_EQ(newer.ask(request("GET /hello")).status, 200);
  door.let_go(server);
  EXPECT_EQ(at_work.read_answer().body, "\"done\"");
}

TEST(Limits, TooManyRequestsInFlightAreToldToComeBack) {
  Limits limits = quick_sweeps();
  limits.requests_in_flight_max = 1;
  Door door;
  TestServer server{with_hello({door.route("/door")}), limits};
  Client first{server.port()};
  first.send(request("GET /door"));
  door.until_somebody_waits();
  Client second{server.port()};
  const auto refused = second.ask(request("GET /hello"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  door.let_go(server);
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(second.ask(request("GET /hello")).status, 200);
}

TEST(Limits, OneKeyHasNoMoreThanItsShareOfThem) {
  Limits limits = quick_sweeps();
  limits.requests_of_caller_max = 1;
  Door door;
  TestServer server{with_hello({door.route("/door")}), limits};
  const std::string key = "Authorization: Bearer viewer-11\r\n";
  Client first{server.port()};
  first.send(request("GET /door", key));
  door.until_somebody_waits();
  Client second{server.port()};
  EXPECT_EQ(second.ask(request("GET /hello", key)).status, 503);
  EXPECT_EQ(second.ask(request("GET /hello")).status, 200) << "somebody else";
  door.let_go(server);
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(second.ask(request("GET /hello", key)).status, 200);
}

TEST(Limits, AllKeysOfOneCompanyHaveNoMoreThanItsShareOfThem) {
  Limits limits = quick_sweeps();
  limits.requests_of_company_max = 1;
  Door door;
  TestServer server{with_hello({door.route("/door")}), limits};
  Client first{server.port()};
  first.send(request("GET /door", "Authorization: Bearer viewer-11\r\n"));
  door.until_somebody_waits();
  Client second{server.port()};
  const std::string another_key = "Authorization: Bearer viewer-12\r\n";
  const auto refused = second.ask(request("GET /hello", another_key));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.body.contains("company 0")) << refused.body;
  EXPECT_EQ(second.ask(request("GET /hello", "Authorization: Bearer viewer-21\r\n")).status, 200);
  EXPECT_EQ(second.ask(request("GET /hello")).status, 200) << "the operator";
  door.let_go(server);
  EXPECT_EQ(first.read_answer().status, 200);
  EXPECT_EQ(second.ask(request("GET /hello", another_key)).status, 200);
}

TEST(Limits, NothingLargeIsKeptForWhoMayNotSendIt) {
  const auto take = Endpoint<None, None, std::string, None>{
      .verb = Verb::put,
      .path = "/large",
      .needs = core::Permission::company_operate,
      .tag = "test",
      .says = "Test",
      .body_bytes_max = 64UL << 20,
      .call = [](core::Call, Input<None, None, std::string>) -> Task<None> { co_return None{}; }};
  TestServer server{{take}, quick_sweeps()};
  Client client{server.port()};
  // Only the head is sent: a response that waited for the body would never come.
  EXPECT_EQ(client
                .ask("PUT /large HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"
                     "Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n")
                .status,
            401);
}

TEST(Limits, AnAnswerCountsAmongTheBodiesUntilItIsDelivered) {
  constexpr std::size_t large = 100'000;
  Limits limits = quick_sweeps();
  limits.buffered_bytes_max = large;
  const auto answering = [](std::string path, std::size_t bytes) {
    return Endpoint<None, None, None, Response>{
        .path = std::move(path),
        .needs = core::Permission::open,
        .tag = "test",
        .says = "Test",
        .call = [bytes](core::Call, Input<None, None, None>) -> Task<Response> {
          return bytes_of(bytes);
        }};
  };
  TestServer server{with_hello({answering("/fits", large), answering("/over", large + 1)}), limits};
  Client client{server.port()};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(client.ask(request("GET /fits")).body.size(), large);
    EXPECT_EQ(client.ask(request("GET /over")).status, 503);
  }
  EXPECT_EQ(client.ask(request("GET /hello")).status, 200);
}

TEST(Limits, BodiesOfAllConnectionsTogetherAreLimited) {
  Limits limits = quick_sweeps();
  limits.buffered_bytes_max = 1000;
  limits.small_body_bytes = 0;
  TestServer server{with_hello(), limits};
  Client holder{server.port()};
  const std::string head = request("GET /hello",
                                   "Content-Type: application/json\r\nContent-Length: 902\r\n"
                                   "Expect: 100-continue\r\n");
  holder.send(head);
  holder.read_until("\r\n\r\n");
  holder.send("\"" + std::string(800, 'x'));
  // The holder's bytes may still be in flight, so the others retry until they have arrived.
  int status = 200;
  while (status == 200) {
    Client other{server.port()};
    status = other.ask(json_request("GET /hello", "\"" + std::string(500, 'x') + "\"")).status;
  }
  EXPECT_EQ(status, 503);
  EXPECT_EQ(holder.ask(std::string(100, 'x') + "\"").status, 200);
  EXPECT_EQ(Client{server.port()}
                .ask(json_request("GET /hello", "\"" + std::string(900, 'x') + "\""))
                .status,
            200)
      << "what was answered must not count any longer";
}

TEST(Limits, ABodyOfSomeSizeIsReadOnlyForWhoMaySendIt) {
  TestServer server{with_hello(), quick_sweeps()};
  const auto head = [](std::size_t bytes) {
    return "GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"
           "Content-Type: application/json\r\nContent-Length: " +
           std::to_string(bytes) + "\r\n\r\n";
  };
  // Only the head is sent: a response that waited for the body would never come.
  EXPECT_EQ(Client{server.port()}.ask(head(20'000)).status, 401);
  EXPECT_EQ(Client{server.port()}
                .ask("GET /hello HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n"
                     "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
                .status,
            401);
  EXPECT_EQ(Client{server.port()}.ask(head(4) + "1234").status, 401);
}

TEST(Limits, AViewerLeavesRoomForTheBodiesOfOthers) {
  Limits limits = quick_sweeps();
  limits.buffered_bytes_max = 400'000;
  limits.body_bytes_max = 200'000;
  TestServer server{with_hello(), limits};
  const auto of = [](std::string_view key, std::size_t bytes) {
    return request("GET /hello", "Authorization: Bearer " + std::string{key} +
                                     "\r\nContent-Type: application/json\r\nContent-Length: " +
                                     std::to_string(bytes) + "\r\n");
  };
  Client holder{server.port()};
  holder.send(of("viewer-11", 90'002) + "\"" + std::string(90'000, 'x'));
  // Every response takes one iteration of the server's loop, which meanwhile reads the holder's
  // body.
  Client other{server.port()};
  for (int turn = 0; turn < 100; ++turn) EXPECT_EQ(other.ask(request("GET /hello")).status, 200);
  const std::string text = "\"" + std::string(50'000, 'x') + "\"";
  EXPECT_EQ(Client{server.port()}.ask(of("viewer-12", text.size()) + text).status, 503)
      << "of the same company";
  EXPECT_EQ(Client{server.port()}.ask(of("viewer-21", text.size()) + text).status, 200);
  EXPECT_EQ(Client{server.port()}.ask(of("key", text.size()) + text).status, 200);
  EXPECT_EQ(holder.ask("\"").status, 200);
}

TEST(Drain, LetsARequestInFlightFinishAndClosesTheIdle) {
  Door door;
  TestServer server{with_hello({door.route("/door")}), quick_sweeps()};
  Client idle{server.port()};
  EXPECT_EQ(idle.ask(request("GET /hello")).status, 200);
  Client busy{server.port()};
  busy.send(request("GET /door"));
  door.until_somebody_waits();

  server.begin_drain(milliseconds{10'000});
  EXPECT_TRUE(idle.closed_by_server());
  door.let_go(server);
  const auto answer = busy.read_answer();
  EXPECT_EQ(answer.body, "\"done\"");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(busy.closed_by_server());
  server.join();
}

TEST(Drain, EndsWhatOutlivesTheGracePeriod) {
  Limits limits = quick_sweeps();
  TestServer server{with_hello(), limits};
  Client half{server.port()};
  EXPECT_EQ(half.ask(request("GET /hello")).status, 200);
  half.send("GET /hello HTTP/1.1\r\n");
  server.stop(milliseconds{50});
  EXPECT_TRUE(half.closed_by_server());
}

TEST(Drain, CancelsAHandlerThatOutlivesTheGracePeriod) {
  Door door;
  TestServer server{{door.route("/door")}, quick_sweeps()};
  Client busy{server.port()};
  busy.send(request("GET /door"));
  door.until_somebody_waits();
  server.stop(milliseconds{50});
  EXPECT_TRUE(busy.closed_by_server());
}

}  // namespace
}  // namespace berth::http
