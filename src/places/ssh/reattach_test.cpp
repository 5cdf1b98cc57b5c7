#include "places/ssh/reattach.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <array>

namespace berth::places::ssh {
namespace {

using namespace std::chrono_literals;

class Picky final : public OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> pieces) override {
    if (pieces.front().bytes == "bad") co_return fail(Errc::log_unavailable, "no room");
    co_return Result<>{};
  }
};

template <class T>
Result<T> await(asio::io_context& loop, Task<T> task) {
  std::optional<Result<T>> end;
  asio::co_spawn(loop, std::move(task),
                 [&](const std::exception_ptr&, Result<T> result) { end = std::move(result); });
  loop.restart();
  loop.run();
  return *std::move(end);
}

TEST(FollowedOutput, KnowsHowFarItsTakerHasCome) {
  asio::io_context loop;
  Picky taker;
  FollowedOutput output{taker, 10};
  const std::array good{OutputPiece{.offset = 10, .next_offset = 30, .at = {}, .bytes = "good"}};
  ASSERT_TRUE(await(loop, output.take(good)));
  EXPECT_EQ(output.offset(), 30U);
  const std::array bad{OutputPiece{.offset = 30, .next_offset = 50, .at = {}, .bytes = "bad"}};
  EXPECT_FALSE(await(loop, output.take(bad)));
  EXPECT_EQ(output.offset(), 30U) << "what was not taken comes again";
  EXPECT_EQ(output.refused()->code, Errc::log_unavailable);
}

TEST(Patience, EndsAfterItsLimitUnlessThereIsProgress) {
  asio::io_context loop;
  Patience patience{250ms};
  EXPECT_TRUE(await(loop, patience.wait()).value());
  EXPECT_FALSE(await(loop, patience.wait()).value()) << "100 and 200 ms are more than that";
  patience.progress();
  EXPECT_TRUE(await(loop, patience.wait()).value());
}

TEST(Patience, OnlyWhatANewConnectionMayMendIsTriedAgain) {
  EXPECT_TRUE(is_about_the_connection(Errc::ssh_unreachable));
  EXPECT_TRUE(is_about_the_connection(Errc::keeper_unreachable));
  EXPECT_FALSE(is_about_the_connection(Errc::ssh_host_key_changed));
  EXPECT_FALSE(is_about_the_connection(Errc::exec_not_found));
}

}  // namespace
}  // namespace berth::places::ssh
