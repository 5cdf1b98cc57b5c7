#include "plugins/routes.hpp"

#include "base/base64.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::plugins {
namespace {

class Kept final : public LiveOutput {
 public:
  void take(execution::OutputKind /*kind*/, std::string_view chunk) override { text += chunk; }
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
  const auto stream = *routes_.reserve_duplex("r");
  const bj::object ids{{"hostRouteId", "r"}, {"workerSessionId", "s"}};
  bj::object data = ids;
  data["chunk"] = base64(std::string_view{"\0\xff", 2});
  EXPECT_TRUE(routes_.take(frame("duplexChannel.data", data), true).value_or(false));
  EXPECT_EQ(read(*stream), std::string("\0\xff", 2));
  data["chunk"] = "not base64";
  EXPECT_FALSE(routes_.take(frame("duplexChannel.data", data), true).value_or(true));
  EXPECT_TRUE(stream->ended());
}

TEST_F(StreamRoutesTest, AFrameOfAClosedStreamIsPassedOverAndOfNoStreamIsAnOffence) {
  ASSERT_TRUE(routes_.reserve_duplex("r"));
  routes_.drop("r");
  const bj::object old{{"hostRouteId", "r"}, {"workerSessionId", "s"}, {"chunk", ""}};
  EXPECT_EQ(routes_.take(frame("duplexChannel.data", old), true).value_or(true), false);
  const bj::object forged{{"hostRouteId", "q"}, {"workerSessionId", "s"}, {"chunk", ""}};
  EXPECT_FALSE(routes_.take(frame("duplexChannel.data", forged), true));
}

TEST_F(StreamRoutesTest, WhatALoginSaysBeforeItsSessionIsKnownIsHeldBack) {
  const auto stream = *routes_.reserve_login("r");
  const bj::object early{{"workerSessionId", "s"}, {"chunk", "early"}};
  EXPECT_TRUE(routes_.take(frame("setupTokenPty.output", early), false));
  const auto stranger = bj::object{{"workerSessionId", "t"}, {"chunk", "other"}};
  EXPECT_TRUE(routes_.take(frame("setupTokenPty.output", stranger), false));
  routes_.bind("r", "s");
  EXPECT_EQ(read(*stream), "early");
  routes_.end_all("over");
  EXPECT_TRUE(stream->ended());
}

TEST_F(StreamRoutesTest, AStreamThatNobodyReadsEndsAtItsLimit) {
  const auto stream = *routes_.reserve_duplex("r");
  for (int i = 0; i < 20 && !stream->ended(); ++i) stream->take(std::string(900'000, 'x'));
  EXPECT_TRUE(stream->ended());
  EXPECT_FALSE(stream->exit_code());
}

}  // namespace
}  // namespace berth::plugins
