#include "plugins/channel.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <functional>

namespace berth::plugins {
namespace {

using namespace std::chrono_literals;

// Records what the channel reports; requests are answered by the test's own function.
class Recorder : public Peer {
 public:
  asio::awaitable<Reply> answer(Request request) override {
    requests.push_back(request.method);
    if (on_request) co_return on_request(request);
    co_return std::unexpected(RpcError{rpc_code::method_not_found, "no " + request.method});
  }
  bool hear(Notification notification) override {
    heard.push_back(std::move(notification));
    return useful;
  }
  void unread(std::string_view why, std::string_view start) override {
    unreadable.push_back(std::string{why} + "|" + std::string{start});
  }

  std::function<Reply(const Request&)> on_request = {};
  bool useful = true;
  std::vector<std::string> requests;
  std::vector<Notification> heard;
  std::vector<std::string> unreadable;
};

// The channel at one end of a socket pair, and the test at the other.
class ChannelTest : public ::testing::Test {
 protected:
  void open(ChannelLimits limits = {}) {
    ::signal(SIGPIPE, SIG_IGN);  // as the server does
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    other_ = Fd{ends[1]};
    channel_ = std::make_unique<Channel>(loop_.get_executor(), Fd{ends[0]},
                                         Fd{::fcntl(ends[0], F_DUPFD_CLOEXEC, 3)}, peer_, limits);
    asio::co_spawn(loop_, channel_->run(), [this](std::exception_ptr thrown, Result<> outcome) {
      if (thrown) std::rethrow_exception(thrown);
      ended_ = std::move(outcome);
      channel_->close("the worker is gone");
    });
  }
  void TearDown() override {
    if (!channel_) return;
    channel_->close("the test is over");
    asio::co_spawn(loop_, channel_->drain(), [](std::exception_ptr, const Result<>&) {});
    loop_.restart();
    loop_.run_for(10s);
  }

  // Runs until the condition holds; fails the test if it never does.
  bool run_until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    loop_.restart();
    bool held = holds();
    while (!held && std::chrono::steady_clock::now() < end) {
      if (loop_.run_one_for(100ms) == 0) loop_.restart();
      held = holds();
    }
    return held;
  }
  void say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(other_.get(), text.data(), text.size(), MSG_DONTWAIT);
      if (sent > 0) {
        text.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (ended_ || errno == EPIPE) return;  // the channel has given up, which is allowed
      loop_.restart();
      loop_.poll();
    }
  }
  // The next line that the channel sent.
  std::string next_line() {
    std::string line;
    const bool whole = run_until([&] {
      char c = 0;
      while (::recv(other_.get(), &c, 1, MSG_DONTWAIT) == 1) {
        if (c == '\n') return true;
        line += c;
      }
      return false;
    });
    EXPECT_TRUE(whole) << "no line came, only: " << line;
    return line;
  }
  bj::object next_message() { return bj::parse(next_line()).as_object(); }

  struct Answered {
    std::optional<CallResult> result = {};
  };
  std::shared_ptr<Answered> call(std::string method, bj::value params = bj::object{},
                                 CallOptions options = {}) {
    auto answered = std::make_shared<Answered>();
    asio::co_spawn(loop_, channel_->call(std::move(method), std::move(params), std::move(options)),
                   [answered](std::exception_ptr thrown, CallResult result) {
                     if (thrown) std::rethrow_exception(thrown);
                     answered->result = std::move(result);
                   });
    loop_.restart();
    loop_.poll();
    return answered;
  }
  void answer(const bj::value& id, const bj::value& result) {
    say(bj::serialize(bj::object{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}) + "\n");
  }

  asio::io_context loop_;
  Recorder peer_;
  std::unique_ptr<Channel> channel_;
  Fd other_;
  std::optional<Result<>> ended_;
};

TEST_F(ChannelTest, AnswersFindTheirCallsInAnyOrder) {
  open();
  const auto first = call("health");
  const auto second = call("shutdown");
  const bj::object one = next_message();
  const bj::object two = next_message();
  EXPECT_EQ(one.at("method"), "health");
  EXPECT_EQ(one.at("jsonrpc"), "2.0");
  answer(two.at("id"), "second");
  answer(one.at("id"), "first");
  ASSERT_TRUE(run_until([&] { return first->result && second->result; }));
  EXPECT_EQ(first->result->value(), "first");
  EXPECT_EQ(second->result->value(), "second");
}

TEST_F(ChannelTest, ARequestIsAnsweredWhileOurOwnCallIsOpen) {
  open();
  peer_.on_request = [](const Request& request) { return Reply{request.params}; };
  const auto mine = call("initialize");
  const bj::object sent = next_message();
  // The same id in the other direction belongs to another call.
  say(R"({"jsonrpc":"2.0","id":1,"method":"state.get","params":{"stateKey":"x"}})"
      "\n");
  const bj::object reply = next_message();
  EXPECT_EQ(reply.at("result").at("stateKey"), "x");
  EXPECT_FALSE(mine->result);
  answer(sent.at("id"), bj::object{{"ok", true}});
  ASSERT_TRUE(run_until([&] { return mine->result.has_value(); }));
  EXPECT_TRUE(mine->result->has_value());
}

TEST_F(ChannelTest, WhatNobodyAnswersIsRefusedAtOnceAndIdsAreEchoed) {
  open();
  say(R"({"jsonrpc":"2.0","id":"seven","method":"issues.list"})"
      "\n");
  const bj::object reply = next_message();
  EXPECT_EQ(reply.at("id"), "seven");
  EXPECT_EQ(reply.at("error").at("code"), rpc_code::method_not_found);
}

TEST_F(ChannelTest, AThousandCallsInFlightAreAllAnswered) {
  open();
  std::vector<std::shared_ptr<Answered>> calls;
  std::vector<bj::value> ids;
  for (int i = 0; i < 1000; ++i) {
    calls.push_back(call("echo", bj::object{{"n", i}}));
    ids.push_back(next_message().at("id"));
  }
  EXPECT_EQ(channel_->calls_in_flight(), 1000U);
  for (std::size_t i = ids.size(); i-- > 0;) answer(ids[i], static_cast<std::int64_t>(i));
  ASSERT_TRUE(run_until([&] { return channel_->calls_in_flight() == 0; }));
  ASSERT_TRUE(run_until([&] { return calls.front()->result.has_value(); }));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ASSERT_TRUE(calls[i]->result && calls[i]->result->has_value()) << i;
    EXPECT_EQ(calls[i]->result->value().to_number<std::size_t>(), i);
  }
}

TEST_F(ChannelTest, ACallWithoutAnAnswerEndsAtItsDeadlineAndItsLateAnswerIsDropped) {
  open();
  const auto slow = call("slow", bj::object{}, {.deadline = 30ms});
  const bj::object sent = next_message();
  ASSERT_TRUE(run_until([&] { return slow->result.has_value(); }));
  EXPECT_EQ(slow->result->error().cause, CallFailure::Cause::timed_out);
  EXPECT_EQ(slow->result->error().code, rpc_code::timeout);
  answer(sent.at("id"), "too late");
  const auto next = call("next");
  answer(next_message().at("id"), "in time");
  ASSERT_TRUE(run_until([&] { return next->result.has_value(); }));
  EXPECT_EQ(next->result->value(), "in time");
}

TEST_F(ChannelTest, TheWorkerSOwnErrorKeepsItsNumber) {
  open();
  const auto refused = call("environmentProbe");
  say(R"({"jsonrpc":"2.0","id":)" + bj::serialize(next_message().at("id")) +
      R"(,"result":1,"error":{"code":14,"message":"no network"}})"
      "\n");
  ASSERT_TRUE(run_until([&] { return refused->result.has_value(); }));
  ASSERT_FALSE(refused->result->has_value());
  EXPECT_EQ(refused->result->error().cause, CallFailure::Cause::refused);
  EXPECT_EQ(refused->result->error().code, 14);
  EXPECT_EQ(refused->result->error().message, "no network");
}

TEST_F(ChannelTest, LineSeparatorsOfUnicodeNeverLeaveRaw) {
  open();
  const std::string text =
      "a\xE2\x80\xA8"
      "b\xE2\x80\xA9"
      "c\xE2\x80\xA6";  // and an ellipsis
  call("echo", bj::object{{"text", text}});
  const std::string line = next_line();
  EXPECT_EQ(line.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(line.find("\xE2\x80\xA9"), std::string::npos);
  EXPECT_NE(line.find("\xE2\x80\xA6"), std::string::npos);
  EXPECT_EQ(std::string_view{bj::parse(line).at("params").at("text").as_string()}, text);
}

TEST_F(ChannelTest, ARawLineSeparatorFromTheWorkerDoesNotEndItsLine) {
  open();
  say("{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{\"message\":\"a\xE2\x80\xA8"
      "b\"}}\n");
  ASSERT_TRUE(run_until([&] { return !peer_.heard.empty(); }));
  EXPECT_EQ(peer_.heard[0].params.at("message"),
            "a\xE2\x80\xA8"
            "b");
}

TEST_F(ChannelTest, ALineMayComeInPiecesWithCrAndBlankLinesAreNothing) {
  open();
  const std::string line = "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{}}\r\n";
  say("\n  \r\n");
  for (const char c : line) {
    say({&c, 1});
    loop_.restart();
    loop_.poll();
  }
  ASSERT_TRUE(run_until([&] { return !peer_.heard.empty(); }));
  EXPECT_TRUE(peer_.unreadable.empty());
}

TEST_F(ChannelTest, LinesThatAreNoMessagesArePassedOverAndSaidOnceASecond) {
  open();
  say("hello from console.log\n[1,2]\n{\"jsonrpc\":\"1.0\",\"method\":\"log\"}\n"
      "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"log\"}\n"
      "{\"jsonrpc\":\"2.0\",\"method\":\"log\",\"params\":{}}\n");
  ASSERT_TRUE(run_until([&] { return !peer_.heard.empty(); }));
  ASSERT_EQ(peer_.unreadable.size(), 1U);
  EXPECT_NE(peer_.unreadable[0].find("hello from console.log"), std::string::npos);
  EXPECT_FALSE(ended_);
}

TEST_F(ChannelTest, ALineThatIsTooLongIsDroppedAndTheNextOneRead) {
  open({.line_in_max = 1000});
  say("{\"jsonrpc\":\"2.0\",\"method\":\"" + std::string(1500, 'x') + "\"}\n" +
      "{\"jsonrpc\":\"2.0\",\"method\":\"log\"}\n");
  ASSERT_TRUE(run_until([&] { return !peer_.heard.empty(); }));
  EXPECT_EQ(peer_.heard[0].method, "log");
  EXPECT_EQ(peer_.unreadable.size(), 1U);
}

TEST_F(ChannelTest, AnEndlessLineEndsTheChannelWithTheReason) {
  open({.line_in_max = 100'000});
  const auto waiting = call("health");
  say(std::string(300'000, '{'));
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  ASSERT_FALSE(ended_->has_value());
  EXPECT_EQ(ended_->error().code, Errc::plugin_protocol);
  ASSERT_TRUE(run_until([&] { return waiting->result.has_value(); }));
  EXPECT_EQ(waiting->result->error().cause, CallFailure::Cause::gone);
}

TEST_F(ChannelTest, JsonThatIsNestedTooDeepEndsTheChannel) {
  open();
  say(std::string(10'000, '[') + "\n");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  EXPECT_NE(ended_->error().message.find("deep"), std::string::npos);
}

TEST_F(ChannelTest, ALineThatWouldNeedManyTimesItsSizeInMemoryEndsTheChannel) {
  open();
  std::string line = R"({"jsonrpc":"2.0","method":"log","params":[0)";
  for (int i = 0; i < 2'000'000; ++i) line += ",0";
  say(line + "]}\n");
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  ASSERT_FALSE(ended_->has_value());
  EXPECT_NE(ended_->error().message.find("memory"), std::string::npos);
}

TEST_F(ChannelTest, ALongLineOfTextFitsWhereOneOfManyValuesDoesNot) {
  open();
  say(R"({"jsonrpc":"2.0","method":"log","params":")" + std::string(4'000'000, ',') + "\"}\n");
  ASSERT_TRUE(run_until([&] { return !peer_.heard.empty(); }));
  EXPECT_EQ(peer_.heard[0].params.as_string().size(), 4'000'000U);
}

TEST_F(ChannelTest, AFloodOfUselessNotificationsEndsTheChannel) {
  open({.notifications_per_second_max = 100});
  peer_.useful = false;
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "{\"jsonrpc\":\"2.0\",\"method\":\"noise\"}\n";
  say(flood);
  ASSERT_TRUE(run_until([&] { return ended_.has_value(); }));
  ASSERT_FALSE(ended_->has_value());
  EXPECT_LE(peer_.heard.size(), 101U);
}

TEST_F(ChannelTest, ACallThatIsTooLargeIsNeverSent) {
  open({.line_out_max = 1000});
  const auto large = call("execute", bj::object{{"stdin", std::string(2000, 'x')}});
  ASSERT_TRUE(run_until([&] { return large->result.has_value(); }));
  EXPECT_EQ(large->result->error().cause, CallFailure::Cause::too_large);
  call("small");
  EXPECT_EQ(next_message().at("method"), "small");
}

TEST_F(ChannelTest, AWorkerThatDoesNotReadFillsAQueueThatEnds) {
  open({.queue_out_max = 1'000'000});
  const std::string bulk(300'000, 'x');
  std::vector<std::shared_ptr<Answered>> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(call("bulk", bj::object{{"x", bulk}}));
  EXPECT_TRUE(std::ranges::any_of(calls, [](const auto& one) {
    return one->result && one->result->error().cause == CallFailure::Cause::busy;
  }));
  EXPECT_LE(channel_->calls_in_flight(), 5U);
}

TEST_F(ChannelTest, WhenTheWorkerGoesAllCallsEnd) {
  open();
  const auto one = call("a");
  const auto two = call("b");
  other_ = Fd{};
  ASSERT_TRUE(run_until([&] { return one->result && two->result && ended_; }));
  EXPECT_TRUE(ended_->has_value());
  EXPECT_EQ(one->result->error().cause, CallFailure::Cause::gone);
  EXPECT_EQ(one->result->error().code, rpc_code::worker_unavailable);
  const auto after = call("c");
  ASSERT_TRUE(run_until([&] { return after->result.has_value(); }));
  EXPECT_EQ(after->result->error().cause, CallFailure::Cause::gone);
}

}  // namespace
}  // namespace berth::plugins
