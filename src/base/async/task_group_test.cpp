#include "base/async/task_group.hpp"

#include "base/async/offload.hpp"
#include "base/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <functional>
#include <stdexcept>

namespace berth {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Task<> succeed() {
  co_return Result<>{};
}

Task<> give_up(Errc code) {
  co_return fail(code, "the crane is stuck");
}

Task<> throw_it() {
  throw std::runtime_error{"snapped"};
  co_return Result<>{};
}

Task<> throw_a_number() {
  throw 7;
  co_return Result<>{};
}

// Waits until it is cancelled and then counts that.
Task<> wait_for_ever(int& ended) {
  asio::steady_timer timer{co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max()};
  co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  ++ended;
  co_return fail(Errc::cancelled, "was told to stop");
}

// The same without checking: the wait's error leaves as an exception.
Task<> wait_and_throw() {
  asio::steady_timer timer{co_await asio::this_coro::executor,
                           asio::steady_timer::time_point::max()};
  co_await timer.async_wait(asio::use_awaitable);
  co_return Result<>{};
}

Task<> start_another_when_cancelled(TaskGroup& group, int& ended) {
  co_await wait_for_ever(ended);
  group.start("late", wait_for_ever(ended));
  co_return Result<>{};
}

Task<> stop(TaskGroup& group, bool& stopped) {
  const Result<> done = co_await group.stop();
  stopped = done.has_value();
  co_return Result<>{};
}

class TaskGroupTest : public testing::Test {
 protected:
  // The log output while the loop runs until it has no work.
  std::string run() {
    testing::internal::CaptureStderr();
    loop_.run();
    loop_.restart();
    return testing::internal::GetCapturedStderr();
  }

  asio::io_context loop_;
  TaskGroup group_{loop_.get_executor()};
  TaskGroup outer_{loop_.get_executor()};
};

TEST_F(TaskGroupTest, ForgetsATaskThatSucceedsAtOnce) {
  group_.start("short", succeed());
  EXPECT_EQ(group_.size(), 1U);
  EXPECT_THAT(run(), IsEmpty());
  EXPECT_EQ(group_.size(), 0U);
}

TEST_F(TaskGroupTest, LogsAnErrorUnderTheNameOfItsTask) {
  group_.start("unload", give_up(Errc::io_failed));
  const std::string log = run();
  EXPECT_THAT(log, HasSubstr("error task.failed task=\"unload\" code=\"io_failed\""));
  EXPECT_THAT(log, HasSubstr("the crane is stuck"));
  EXPECT_EQ(group_.size(), 0U);
}

TEST_F(TaskGroupTest, DoesNotLogACancelledTask) {
  group_.start("unload", give_up(Errc::cancelled));
  EXPECT_THAT(run(), IsEmpty());
}

TEST_F(TaskGroupTest, CatchesAndLogsWhateverIsThrown) {
  group_.start("lift", throw_it());
  EXPECT_THAT(run(), HasSubstr("error task.threw task=\"lift\" what=\"snapped\""));
  group_.start("count", throw_a_number());
  EXPECT_THAT(run(), HasSubstr("error task.threw task=\"count\""));
  EXPECT_EQ(group_.size(), 0U);
}

TEST_F(TaskGroupTest, OneFailureLeavesTheOthersAlone) {
  int ended = 0;
  bool stopped = false;
  group_.start("waits", wait_for_ever(ended));
  group_.start("fails", give_up(Errc::io_failed));
  testing::internal::CaptureStderr();
  loop_.poll();
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(group_.size(), 1U);
  EXPECT_EQ(ended, 0);
  outer_.start("stop", stop(group_, stopped));
  run();
  EXPECT_EQ(ended, 1);
}

TEST_F(TaskGroupTest, StopCancelsEveryTaskAndWaitsForAll) {
  int ended = 0;
  bool stopped = false;
  for (int i = 0; i < 10; ++i) group_.start("waits", wait_for_ever(ended));
  group_.start("throws", wait_and_throw());
  outer_.start("stop", stop(group_, stopped));
  EXPECT_THAT(run(), IsEmpty()) << "to be cancelled is no error";
  EXPECT_EQ(ended, 10);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(group_.size(), 0U);
}

TEST_F(TaskGroupTest, StopOfAnEmptyGroupReturnsAtOnce) {
  bool stopped = false;
  outer_.start("stop", stop(group_, stopped));
  run();
  EXPECT_TRUE(stopped);
}

TEST_F(TaskGroupTest, StopWaitsForTasksThatEndAtOnce) {
  bool stopped = false;
  for (int i = 0; i < 10; ++i) group_.start("short", succeed());
  outer_.start("stop", stop(group_, stopped));
  run();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(group_.size(), 0U);
}

TEST_F(TaskGroupTest, StopAlsoCancelsTasksThatStartMeanwhile) {
  int ended = 0;
  bool stopped = false;
  group_.start("parent", start_another_when_cancelled(group_, ended));
  outer_.start("stop", stop(group_, stopped));
  run();
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(stopped);
}

TEST_F(TaskGroupTest, TwoMayStopAtTheSameTime) {
  int ended = 0;
  bool first = false;
  bool second = false;
  group_.start("waits", wait_for_ever(ended));
  outer_.start("stop", stop(group_, first));
  outer_.start("stop", stop(group_, second));
  run();
  EXPECT_TRUE(first && second);
}

TEST_F(TaskGroupTest, CanBeUsedAgainAfterAStop) {
  int ended = 0;
  bool stopped = false;
  group_.start("waits", wait_for_ever(ended));
  outer_.start("stop", stop(group_, stopped));
  run();
  group_.start("again", wait_for_ever(ended));
  loop_.poll();
  EXPECT_EQ(group_.size(), 1U) << "a task after the stop is not cancelled by it";
  EXPECT_EQ(ended, 1);
  loop_.restart();
  outer_.start("stop", stop(group_, stopped));
  run();
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace berth
