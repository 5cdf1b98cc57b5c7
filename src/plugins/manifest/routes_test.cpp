#include "plugins/manifest/routes.hpp"

#include "base/base64.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::plugins {
namespace {

class Kept final : public LiveOutput {
 public:
  void take(keepers::OutputKind /*kind*/, std::string_view chunk) override { text += chunk; }
  std::string text;
};

Notification output(std::string chunk, std::optional<std::string> invocation,
                    std::string stream = "stdout") {
  return {.method = "execute.log",
          .params = bj::object{{"stream", stream}, {"chunk", chunk}},
          .invocation_id = std::move(invocation)};
}

TEST(OutputRoutes, TakeOnlyWhatNamesAnOpenCall) {
  OutputRoutes routes;
  Kept kept;
  routes.open("call", "company", kept);
  EXPECT_TRUE(routes.take(output("a", "call")));
  EXPECT_FALSE(routes.take(output("b", "another")));
  EXPECT_FALSE(routes.take(output("c", std::nullopt)));
  EXPECT_FALSE(routes.take(output("d", "call", "stdlog")));
  EXPECT_FALSE(routes.take(output("", "call")));
  EXPECT_FALSE(routes.take(output(std::string(1'000'001, 'x'), "call")));
  routes.close("call");
  EXPECT_FALSE(routes.take(output("e", "call")));
  EXPECT_EQ(kept.text, "a");
}

TEST(OutputRoutes, OfTwoCompaniesAtOnceAreHeardByNeither) {
  OutputRoutes routes;
  Kept one;
  Kept two;
  Kept three;
  routes.open("1", "a", one);
  routes.open("2", "b", two);
  routes.take(output("x", "1"));
  routes.take(output("x", "2"));
  routes.close("2");
  routes.take(output("x", "1"));
  EXPECT_EQ(one.text + two.text, "") << "shut for the rest of their lives";
  routes.close("1");
  routes.open("3", "a", three);
  routes.take(output("x", "3"));
  EXPECT_EQ(three.text, "x");
}

class StreamRoutesTest : public ::testing::Test {
 protected:
  static Notification frame(std::string method, bj::object params) {
    return {.method = std::move(method), .params = std::move(params)};
  }
  static Notification data(const char* route, const char* session, std::string_view chunk) {
    return frame("duplexChannel.data",
                 {{"hostRouteId", route}, {"workerSessionId", session}, {"chunk", chunk}});
  }
  // Reads from a stream that has data or has ended.
  std::optional<std::string> read(Stream& stream) {
    std::optional<std::string> out;
    asio::co_spawn(loop_, stream.read(),
                   [&](std::exception_ptr, Result<std::optional<std::string>> next) {
                     if (next) out = *std::move(next);
                   });
    loop_.restart();
    loop_.poll();
    return out;
  }
  asio::io_context loop_;
  StreamRoutes routes_{loop_.get_executor()};
};

TEST_F(StreamRoutesTest, BytesAreDecodedWhereThePluginSendsBase64) {
  const auto stream = routes_.reserve_duplex("r");
  ASSERT_TRUE(routes_.bind("r", "s", Payload::base64));
  EXPECT_TRUE(routes_.take(data("r", "s", base64(std::string_view{"\0\xff", 2})), Payload::base64)
                  .value_or(false));
  EXPECT_EQ(read(*stream), std::string("\0\xff", 2));
}

TEST_F(StreamRoutesTest, AStreamOfFramesThatAreNoneEnds) {
  const auto stream = routes_.reserve_duplex("r");
  ASSERT_TRUE(routes_.bind("r", "s", Payload::base64));
  const Notification wrong = data("r", "s", "not base64");
  for (int i = 1; i < 100; ++i) ASSERT_EQ(routes_.take(wrong, Payload::base64), false);
  EXPECT_FALSE(stream->end());
  EXPECT_EQ(routes_.take(wrong, Payload::base64), false);
  ASSERT_TRUE(stream->end());
  EXPECT_EQ(stream->end()->cause, StreamEnd::Cause::breach);
}

TEST_F(StreamRoutesTest, AChunkThatIsTooLongEndsAStreamButIsOnlyPassedOverInALogin) {
  const std::string chunk(1'000'001, 'x');
  const auto stream = routes_.reserve_duplex("r");
  ASSERT_TRUE(routes_.bind("r", "s", Payload::text));
  EXPECT_TRUE(routes_.take(data("r", "s", chunk), Payload::text));
  EXPECT_TRUE(stream->end());
  const auto login = *routes_.reserve_login("l");
  ASSERT_TRUE(routes_.bind("l", "t", Payload::text));
  EXPECT_TRUE(routes_.take(
      frame("loginPty.output", {{"hostRouteId", "l"}, {"workerSessionId", "t"}, {"chunk", chunk}}),
      Payload::text));
  EXPECT_FALSE(login->end());
}

TEST_F(StreamRoutesTest, WhatComesBeforeTheAnswerIsHeldAndItsEndIsTheLast) {
  const auto stream = routes_.reserve_duplex("r");
  const bj::object exit{{"hostRouteId", "r"}, {"workerSessionId", "s"}, {"exitCode", 4}};
  EXPECT_TRUE(routes_.take(data("r", "s", "one "), Payload::text));
  EXPECT_TRUE(routes_.take(frame("duplexChannel.exit", exit), Payload::text));
  EXPECT_TRUE(routes_.take(data("r", "s", "two"), Payload::text));
  EXPECT_FALSE(stream->end());
  ASSERT_TRUE(routes_.bind("r", "s", Payload::text));
  EXPECT_EQ(read(*stream), "one ");
  EXPECT_EQ(read(*stream), "two");
  ASSERT_TRUE(stream->end());
  EXPECT_EQ(stream->end()->exit_code, 4);
}

TEST_F(StreamRoutesTest, TooMuchBeforeTheAnswerEndsTheStream) {
  const auto stream = routes_.reserve_duplex("r");
  for (int i = 0; i < 10'002; ++i) ASSERT_TRUE(routes_.take(data("r", "s", "x"), Payload::text));
  EXPECT_TRUE(stream->end());
}

TEST_F(StreamRoutesTest, AFrameOfAClosedStreamIsPassedOverAndOfNoStreamIsAnOffence) {
  routes_.reserve_duplex("r");
  routes_.drop("r");
  EXPECT_EQ(routes_.take(data("r", "s", ""), Payload::base64), false);
  EXPECT_FALSE(routes_.take(data("q", "s", ""), Payload::base64));
  routes_.reserve_duplex("p");
  ASSERT_TRUE(routes_.take(data("p", "early", ""), Payload::base64)) << "not bound yet";
  EXPECT_FALSE(routes_.bind("p", "s", Payload::base64)) << "it was of another session";
  EXPECT_FALSE(routes_.take(data("p", "t", ""), Payload::base64));
}

TEST_F(StreamRoutesTest, WhatALoginSaysBeforeItsSessionIsKnownIsHeldBack) {
  const auto stream = *routes_.reserve_login("r");
  const bj::object early{{"workerSessionId", "s"}, {"chunk", "early"}};
  EXPECT_TRUE(routes_.take(frame("setupTokenPty.output", early), Payload::text));
  const auto stranger = bj::object{{"workerSessionId", "t"}, {"chunk", "other"}};
  EXPECT_TRUE(routes_.take(frame("setupTokenPty.output", stranger), Payload::text));
  ASSERT_TRUE(routes_.bind("r", "s", Payload::text));
  EXPECT_EQ(read(*stream), "early");
  EXPECT_FALSE(routes_.reserve_login("second")) << "a worker has one";
  routes_.end_all("over");
  EXPECT_TRUE(stream->end());
  EXPECT_EQ(read(*stream), std::nullopt) << "the other session's word is not in it";
  EXPECT_TRUE(routes_.reserve_login("second"));
}

TEST_F(StreamRoutesTest, AStreamThatNobodyReadsEndsAtItsLimit) {
  const auto stream = routes_.reserve_duplex("r");
  for (int i = 0; i < 20 && !stream->end(); ++i) stream->take(std::string(900'000, 'x'));
  ASSERT_TRUE(stream->end());
  EXPECT_FALSE(stream->end()->exit_code);
}

}  // namespace
}  // namespace berth::plugins
