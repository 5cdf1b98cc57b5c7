#include "base/async/offload.hpp"

#include "base/async/task_group.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace berth {
namespace {

// Has no default and cannot be copied, like most store results.
struct Answer {
  explicit Answer(std::thread::id where) : made_on(where) {}
  Answer(Answer&&) = default;
  Answer& operator=(Answer&&) = default;
  std::unique_ptr<int> box = std::make_unique<int>(42);
  std::thread::id made_on;
};

struct Seen {
  std::thread::id before, work, after;
  int value = 0;
  std::string error;
};

class OffloadTest : public testing::Test {
 protected:
  asio::io_context loop_;
  asio::thread_pool pool_{2};
  TaskGroup tasks_{loop_.get_executor()};
};

Task<> look(asio::thread_pool& pool, Seen& seen) {
  seen.before = std::this_thread::get_id();
  Result<Answer> answer =
      co_await offload(pool, []() -> Result<Answer> { return Answer{std::this_thread::get_id()}; });
  seen.after = std::this_thread::get_id();
  seen.work = answer->made_on;
  seen.value = *answer->box;
  co_return Result<>{};
}

TEST_F(OffloadTest, WorksOnAnotherThreadAndComesBackToTheLoops) {
  Seen seen;
  tasks_.start("look", look(pool_, seen));
  loop_.run();
  EXPECT_EQ(seen.before, std::this_thread::get_id());
  EXPECT_EQ(seen.after, std::this_thread::get_id());
  EXPECT_NE(seen.work, std::this_thread::get_id());
  EXPECT_EQ(seen.value, 42);
}

Task<> fail_there(asio::thread_pool& pool, Seen& seen) {
  const Result<Answer> answer = co_await offload(
      pool, []() -> Result<Answer> { return fail(Errc::store_locked, "the store is locked"); });
  seen.error = answer ? "" : answer.error().message;
  co_return Result<>{};
}

TEST_F(OffloadTest, BringsBackAnError) {
  Seen seen;
  tasks_.start("fail", fail_there(pool_, seen));
  loop_.run();
  EXPECT_EQ(seen.error, "the store is locked");
}

Task<> throw_there(asio::thread_pool& pool, Seen& seen) {
  try {
    co_await offload(pool, []() -> Result<Answer> { throw std::runtime_error{"snapped"}; });
  } catch (const std::runtime_error& error) {
    seen.error = error.what();
    seen.after = std::this_thread::get_id();
  }
  co_return Result<>{};
}

TEST_F(OffloadTest, BringsBackWhatTheWorkThrew) {
  Seen seen;
  tasks_.start("throw", throw_there(pool_, seen));
  loop_.run();
  EXPECT_EQ(seen.error, "snapped");
  EXPECT_EQ(seen.after, std::this_thread::get_id());
}

Task<> meet(asio::thread_pool& pool, std::latch& both, int& met) {
  co_await offload(pool, [&both] {
    both.arrive_and_wait();  // ends only when two of these run at the same time
    return true;
  });
  ++met;
  co_return Result<>{};
}

TEST_F(OffloadTest, RunsAsManyAtOnceAsThePoolHasThreads) {
  std::latch both{2};
  int met = 0;
  tasks_.start("one", meet(pool_, both, met));
  tasks_.start("two", meet(pool_, both, met));
  loop_.run();
  EXPECT_EQ(met, 2);
}

Task<> stop_after_release(TaskGroup& group, std::latch& release, bool& stopped) {
  release.count_down();
  co_await group.stop();
  stopped = true;
  co_return Result<>{};
}

Task<> work_until(asio::thread_pool& pool, std::latch& release, bool& finished) {
  finished = co_await offload(pool, [&release] {
    release.wait();
    return true;
  });
  co_return Result<>{};
}

TEST_F(OffloadTest, WorkUnderWayIsFinishedBeforeAStopReturns) {
  std::latch release{1};
  bool finished = false;
  bool stopped = false;
  TaskGroup outer{loop_.get_executor()};
  tasks_.start("work", work_until(pool_, release, finished));
  outer.start("stop", stop_after_release(tasks_, release, stopped));
  loop_.run();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace berth
