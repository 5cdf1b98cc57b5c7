#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <future>

namespace berth::http {
namespace {

using http_test::Client;
using http_test::request;
using http_test::TestServer;
using std::chrono::milliseconds;
using NoInput = Input<None, None, None>;

Route stream(
    std::string path,
    std::function<Task<>(core::Call, NoInput, std::optional<std::string>, EventSink&)> call) {
  return EventStream<None, None>{.path = std::move(path),
                                 .needs = core::Permission::open,
                                 .tag = "test",
                                 .says = "Test",
                                 .call = std::move(call)};
}

Task<> count(core::Call /*call*/, NoInput /*input*/, std::optional<std::string> last,
             EventSink& sink) {
  const int from = last ? std::stoi(*last) + 1 : 1;
  for (int i = from; i <= 3; ++i) {
    Event event{.id = std::to_string(i), .name = "tick", .data = "line one\nline two"};
    BERTH_CO_DO(co_await sink.send(std::move(event)));
  }
  co_return Result<>{};
}

Task<> absent(core::Call /*call*/, NoInput /*input*/, std::optional<std::string> /*last*/,
              EventSink& /*sink*/) {
  co_return fail(Errc::run_not_found, "run 7: is not there");
}

Task<> fails_late(core::Call /*call*/, NoInput /*input*/, std::optional<std::string> /*last*/,
                  EventSink& sink) {
  BERTH_CO_DO(co_await sink.send({.data = "first"}));
  co_return fail(Errc::store_failed, "the store is gone");
}

// A handler whose progress and end the test can see.
class Watched {
 public:
  Route floods(std::string path) {
    return stream(std::move(path),
                  [this](auto, auto, auto, EventSink& sink) { return flood(sink); });
  }
  Route waits(std::string path) {
    return stream(std::move(path), [this](auto, auto, auto, EventSink&) { return wait(); });
  }
  void until_ended() { ended_.get_future().wait(); }

  static constexpr int sent_max = 2000;  // 64 KiB each: more than any buffer holds
  std::atomic<int> sent = 0;

 private:
  Task<> flood(EventSink& sink) {
    Result<> going;
    while (going && sent < sent_max) {
      Event event{.data = std::string(64 * 1024, 'x')};
      going = co_await sink.send(std::move(event));
      if (going) ++sent;
    }
    if (!going) EXPECT_EQ(going.error().code, Errc::cancelled);
    EXPECT_EQ(sink.open(), going.has_value());
    ended_.set_value();
    co_return going;
  }
  Task<> wait() {
    asio::steady_timer never{co_await asio::this_coro::executor,
                             asio::steady_timer::time_point::max()};
    co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
    ended_.set_value();
    co_return Result<>{};
  }

  std::promise<void> ended_;
};

Limits quick() {
  return Limits{.sweep_interval = milliseconds{10}, .keep_alive_interval = milliseconds{20}};
}

TEST(EventStreams, EventsArriveAndTheStreamEndsWithItsHandler) {
  TestServer server{{stream("/events", count)}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n")) << head;
  EXPECT_TRUE(head.contains("Content-Type: text/event-stream\r\n")) << head;
  EXPECT_TRUE(head.contains("Cache-Control: no-store\r\n")) << head;
  const std::string event = "event: tick\ndata: line one\ndata: line two\n\n";
  EXPECT_EQ(client.read_all(), "id: 1\n" + event + "id: 2\n" + event + "id: 3\n" + event);
}

TEST(EventStreams, AClientContinuesBehindItsLastEvent) {
  TestServer server{{stream("/events", count)}, quick()};
  Client client{server.port()};
  client.send(request("GET /events", "Last-Event-ID: 2\r\n"));
  client.read_until("\r\n\r\n");
  EXPECT_TRUE(client.read_all().starts_with("id: 3\n"));
}

TEST(EventStreams, AnErrorBeforeTheFirstEventIsAPlainAnswer) {
  TestServer server{{stream("/events", absent)}, quick()};
  Client client{server.port()};
  EXPECT_EQ(client.ask(request("GET /events")).status, 404);
  EXPECT_EQ(client.ask(request("GET /events?x=1")).status, 400) << "and so is wrong input";
  EXPECT_EQ(client.ask(request("GET /events", "Authorization: Bearer wrong\r\n")).status, 401);
  client.send(request("HEAD /events"));
  EXPECT_EQ(client.read_answer(Client::Body::absent).status, 405);
}

TEST(EventStreams, ALaterErrorIsTheLastEvent) {
  TestServer server{{stream("/events", fails_late)}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  client.read_until("data: first\n\n");
  EXPECT_EQ(client.read_all(),
            "event: error\ndata: {\"error\":\"the store is gone\",\"code\":\"store_failed\"}\n\n");
}

TEST(EventStreams, SilenceIsFilledWithComments) {
  Watched handler;
  TestServer server{{handler.waits("/events")}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  EXPECT_TRUE(client.read_until("\r\n\r\n").contains("text/event-stream"));
  EXPECT_EQ(client.read_bytes(28), ": keep-alive\n\n: keep-alive\n\n");
}

TEST(EventStreams, AClientThatGoesEndsAHandlerThatWaits) {
  Watched handler;
  TestServer server{{handler.waits("/events")}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  client.read_until(": keep-alive\n\n");
  client.close();
  handler.until_ended();
}

TEST(EventStreams, AClientThatGoesEndsAHandlerThatSends) {
  Watched handler;
  TestServer server{{handler.floods("/events")}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  client.read_until("data: ");
  client.close();
  handler.until_ended();
  EXPECT_LT(handler.sent, Watched::sent_max);
}

TEST(EventStreams, ASlowClientHoldsItsHandlerBackAndIsNotWaitedForLongerThanTheLimit) {
  Watched handler;
  Limits limits = quick();
  limits.write_timeout = milliseconds{100};
  TestServer server{{handler.floods("/events")}, limits};
  Client client{server.port()};
  client.send(request("GET /events"));
  handler.until_ended();
  EXPECT_LT(handler.sent, Watched::sent_max) << "the kernel takes some megabytes, nobody the rest";
}

TEST(EventStreams, EndWhenTheServerDrains) {
  Watched handler;
  TestServer server{{handler.waits("/events")}, quick()};
  Client client{server.port()};
  client.send(request("GET /events"));
  client.read_until(": keep-alive\n\n");
  server.begin_drain(milliseconds{10'000});
  handler.until_ended();
  server.join();
}

}  // namespace
}  // namespace berth::http
