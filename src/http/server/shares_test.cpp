#include "http/server/shares.hpp"

#include "http/endpoint.hpp"
#include "support/http.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <condition_variable>
#include <mutex>

namespace berth::http {
namespace {

using http_test::Answer;
using http_test::Client;
using http_test::request;
using http_test::TestServer;
using std::chrono::milliseconds;

Task<> wait_until_cancelled() {
  asio::steady_timer never{co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max()};
  co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return Result<>{};
}

Task<> events(core::Call /*call*/, Input<None, None, None> /*input*/,
              std::optional<std::string> /*last*/, EventSink& sink) {
  BERTH_CO_DO(co_await sink.send({.data = "here"}));
  co_return co_await wait_until_cancelled();
}

Task<bj::value> shared_hello(core::Call /*call*/, Input<None, None, None> /*input*/) {
  co_return bj::value("hello");
}

// Requests that keep running until the server stops, and their count.
class Crowd {
 public:
  Route route() {
    return Endpoint<None, None, None, bj::value>{
        .path = "/stay",
        .needs = core::Permission::open,
        .tag = "test",
        .says = "Test",
        .call = [this](core::Call, Input<None, None, None>) { return stay(); }};
  }
  void until(int count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  Task<bj::value> stay() {
    {
      const std::lock_guard lock{mutex_};
      ++count_;
    }
    changed_.notify_all();
    BERTH_CO_DO(co_await wait_until_cancelled());
    co_return bj::value("done");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

std::vector<Route> crowd_routes(Crowd& crowd) {
  const auto plain = [](std::string path, bool is_always_answered) {
    return Endpoint<None, None, None, bj::value>{.path = std::move(path),
                                                 .needs = core::Permission::open,
                                                 .tag = "test",
                                                 .says = "Test",
                                                 .is_always_answered = is_always_answered,
                                                 .call = shared_hello};
  };
  return {plain("/hello", false), plain("/health", true), crowd.route(),
          EventStream<None, None>{.path = "/events",
                                  .needs = core::Permission::open,
                                  .tag = "test",
                                  .says = "Test",
                                  .call = events}};
}

Limits quick_lingers() {
  return Limits{.linger_timeout = milliseconds{100}, .sweep_interval = milliseconds{10}};
}

std::string ask_for(std::string_view path, std::string_view viewer) {
  return request("GET " + std::string{path},
                 "Authorization: Bearer viewer-" + std::string{viewer} + "\r\n");
}

// A stream that has begun; a refused one has the response.
class Stream {
 public:
  Stream(const TestServer& server, std::string_view viewer) : client_(server.port()) {
    client_.send(ask_for("/events", viewer));
    answer_ = client_.read_answer();
    if (answer_.status == 200) client_.read_until("here\n\n");
  }
  bool is_open() const { return answer_.status == 200; }
  const Answer& answer() const { return answer_; }
  void close() { client_.close(); }
  // Everything until the server ends it.
  std::string rest() { return client_.read_all(); }
  // Whether another byte arrives: that of the pulse.
  bool goes_on() { return !client_.read_bytes(1).empty(); }

 private:
  Client client_;
  Answer answer_;
};

TEST(SharesTest, RefuseTheStreamThatIsOneTooManyForAKeyOrItsCompany) {
  Limits limits = quick_lingers();
  limits.streams_of_caller_max = 2;
  limits.streams_of_company_max = 3;
  Crowd crowd;
  TestServer server{crowd_routes(crowd), limits};
  Stream first{server, "11"};
  Stream second{server, "11"};
  ASSERT_TRUE(first.is_open() && second.is_open());

  const Stream third{server, "11"};
  EXPECT_EQ(third.answer().status, 503);
  EXPECT_TRUE(third.answer().body.contains("\"code\":\"overloaded\"")) << third.answer().body;
  EXPECT_TRUE(third.answer().body.contains("token 00000000")) << third.answer().body;
  EXPECT_TRUE(third.answer().body.contains("streams_per_key")) << third.answer().body;

  const Stream of_another_key{server, "12"};
  EXPECT_TRUE(of_another_key.is_open());
  const Stream too_many_for_the_company{server, "12"};
  EXPECT_EQ(too_many_for_the_company.answer().status, 503);
  EXPECT_TRUE(too_many_for_the_company.answer().body.contains("company 00000000"));
  const Stream of_another_company{server, "23"};
  EXPECT_TRUE(of_another_company.is_open());

  first.close();
  bool again = false;  // once the server has noticed the close
  while (!again) again = Stream{server, "11"}.is_open();
}

TEST(SharesTest, TakeTheConnectionOfANewcomerFromWhoeverHoldsTheMost) {
  Limits limits = quick_lingers();
  limits.connections_max = 4;
  limits.keep_alive_interval = milliseconds{20};
  Crowd crowd;
  TestServer server{crowd_routes(crowd), limits};
  Stream oldest{server, "11"};
  Stream other{server, "22"};
  Stream second{server, "11"};
  Stream third{server, "11"};
  ASSERT_TRUE(oldest.is_open() && other.is_open() && second.is_open() && third.is_open());

  Client newcomer{server.port()};
  EXPECT_EQ(newcomer.ask(ask_for("/hello", "33")).status, 200);
  EXPECT_FALSE(oldest.rest().contains("error")) << "it ends as a stream ends";
  EXPECT_TRUE(other.goes_on() && second.goes_on() && third.goes_on());
  EXPECT_EQ(server.observer.evicted, 1);
}

TEST(SharesTest, KeepConnectionsForAdministratorsAndHealth) {
  Limits limits = quick_lingers();
  limits.connections_max = 2;
  limits.connections_reserved = 2;
  Crowd crowd;
  TestServer server{crowd_routes(crowd), limits};
  Client first{server.port()};
  first.send(ask_for("/stay", "11"));
  Client second{server.port()};
  second.send(ask_for("/stay", "12"));
  crowd.until(2);

  std::vector<Client> silent;  // they are evicted for later clients
  for (int i = 0; i < 5; ++i) silent.emplace_back(server.port());
  Client viewer{server.port()};
  const Answer refused = viewer.ask(ask_for("/hello", "23"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("connection"), "close");
  EXPECT_TRUE(refused.body.contains("administrators")) << refused.body;
  EXPECT_EQ(Client{server.port()}.ask(ask_for("/health", "23")).status, 200);
  for (int i = 0; i < 5; ++i) {
    Client administrator{server.port()};
    const Answer answered = administrator.ask(request("GET /hello"));
    EXPECT_EQ(answered.status, 200) << answered.body;
    EXPECT_EQ(answered.header("connection"), "close");
  }
}

TEST(SharesTest, KeepRequestsForAdministratorsAndHealth) {
  Limits limits = quick_lingers();
  limits.requests_in_flight_max = 3;
  limits.requests_reserved = 1;
  Crowd crowd;
  TestServer server{crowd_routes(crowd), limits};
  Client first{server.port()};
  first.send(ask_for("/stay", "11"));
  Client second{server.port()};
  second.send(ask_for("/stay", "22"));
  crowd.until(2);
  EXPECT_EQ(Client{server.port()}.ask(ask_for("/hello", "33")).status, 503);
  EXPECT_EQ(Client{server.port()}.ask(ask_for("/health", "33")).status, 200);
  EXPECT_EQ(Client{server.port()}.ask(request("GET /hello")).status, 200);
}

TEST(SharesTest, AreLargerButNotEndlessForTheOperatorAtTheMachine) {
  Limits limits = quick_lingers();
  limits.connections_max = 8;
  limits.streams_of_caller_max = 1;
  Crowd crowd;
  TestServer server{crowd_routes(crowd), limits};
  std::vector<Client> open;
  for (int i = 0; i < 4; ++i) {
    open.emplace_back(server.port());
    open.back().send(request("GET /events"));
    EXPECT_EQ(open.back().read_answer().status, 200);
  }
  Client one_more{server.port()};
  const Answer refused = one_more.ask(request("GET /events"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.body.contains("the local operator")) << refused.body;
}

}  // namespace
}  // namespace berth::http
