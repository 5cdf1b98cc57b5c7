#include "providers/linux/warm_pool.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <set>

namespace berth::providers {
namespace {

using namespace std::chrono_literals;

// Says what is there, and can be told to fail.
class Workbench final : public SpareMaker {
 public:
  Task<keeper::Confined> make_spare(std::string id, SpareOrder order,
                                    std::chrono::milliseconds lifetime) override {
    ++attempts;
    if (fails) co_return fail(Errc::sandbox_setup_failed, "the workbench is told to fail");
    there.insert(id);
    lifetimes.insert(lifetime);
    co_return keeper::Confined{.features = {order.plan.hostname}};
  }
  Task<> remove_spare(std::string id) override {
    there.erase(id);
    removed.insert(id);
    co_return Result<>{};
  }

  std::set<std::string> there;
  std::set<std::string> removed;
  std::set<std::chrono::milliseconds> lifetimes;
  int attempts = 0;
  bool fails = false;
};

class WarmPoolTest : public testing::Test {
 protected:
  ~WarmPoolTest() override { stop(); }

  // Lets the pool work until it is so, within reason.
  void work_until(const std::function<bool()>& is_so) {
    loop_.restart();
    for (int turn = 0; turn < 1000 && !is_so(); ++turn) loop_.run_one();
    EXPECT_TRUE(is_so());
  }
  void work_until_ready(std::size_t count) {
    work_until([&] { return bench_.there.size() == count; });
  }
  void stop() {
    TaskGroup group{loop_.get_executor()};
    loop_.restart();
    group.start("stop", pool_.stop());
    loop_.run();
  }

  static SpareOrder plan(const std::string& name) {
    SpareOrder made;
    made.plan.hostname = name;
    return made;
  }

  static constexpr PoolWish two{.size = 2, .age_max = 1h};
  asio::io_context loop_;
  SystemRandom random_;
  SystemClock clock_;
  Workbench bench_;
  WarmPool pool_{loop_.get_executor(), bench_, random_, clock_};
};

TEST_F(WarmPoolTest, FillsUpAfterTheFirstAskedForNothing) {
  EXPECT_FALSE(pool_.take(plan("a"), two));
  work_until_ready(2);
  const auto taken = pool_.take(plan("a"), two);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(bench_.there.contains(taken->id));
  EXPECT_EQ(taken->confined.features, std::vector<std::string>{"a"});
  EXPECT_FALSE(pool_.holds(taken->id));
  work_until_ready(3);  // the one that was taken, and two
}

TEST_F(WarmPoolTest, GivesEachOutOnce) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  const auto one = pool_.take(plan("a"), two);
  const auto other = pool_.take(plan("a"), two);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->id, other->id);
  EXPECT_FALSE(pool_.take(plan("a"), two));
}

TEST_F(WarmPoolTest, KeepsPlansApart) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  EXPECT_FALSE(pool_.take(plan("b"), two));
  work_until_ready(4);
  const auto taken = pool_.take(plan("b"), two);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->confined.features, std::vector<std::string>{"b"});
}

TEST_F(WarmPoolTest, RemovesWhatIsTooOldInsteadOfGivingIt) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  const std::set<std::string> old = bench_.there;
  const PoolWish young{.size = 2, .age_max = 0ms};
  EXPECT_FALSE(pool_.take(plan("a"), young));
  work_until([&] { return std::ranges::includes(bench_.removed, old); });
  pool_.take(plan("a"), {});
}

TEST_F(WarmPoolTest, ForgetsAPlanThatWishesForNoneAnyMore) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  pool_.take(plan("a"), {.size = 0, .age_max = 1h});
  work_until([&] { return bench_.removed.size() == 1; });  // the other one was taken
}

TEST_F(WarmPoolTest, MakesThemBeforeSomebodyAsks) {
  pool_.expect(plan("a"), two);
  work_until_ready(2);
  EXPECT_TRUE(pool_.take(plan("a"), two));
}

TEST_F(WarmPoolTest, MakesNoneWhereNoneIsWishedFor) {
  pool_.expect(plan("a"), {});
  EXPECT_FALSE(pool_.take(plan("a"), {}));
  loop_.run();
  EXPECT_EQ(bench_.attempts, 0);
}

TEST_F(WarmPoolTest, PausesAfterAFailure) {
  bench_.fails = true;
  pool_.take(plan("a"), two);
  work_until([&] { return bench_.attempts == 1; });
  bench_.fails = false;
  const auto failed_at = std::chrono::steady_clock::now();
  work_until_ready(2);
  EXPECT_GE(std::chrono::steady_clock::now() - failed_at, 500ms);
}

TEST_F(WarmPoolTest, StoppedRemovesWhatIsReadyAndLeavesWhatWasTaken) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  const auto taken = pool_.take(plan("a"), two);
  ASSERT_TRUE(taken);
  stop();
  EXPECT_EQ(bench_.there, std::set<std::string>{taken->id});
}

TEST_F(WarmPoolTest, ItsSandboxesOutliveTheirAgeOnlyForAWhile) {
  pool_.take(plan("a"), two);
  work_until_ready(2);
  ASSERT_FALSE(bench_.lifetimes.empty());
  EXPECT_GT(*bench_.lifetimes.begin(), 1h);
  EXPECT_LT(*bench_.lifetimes.rbegin(), 2h);
}

}  // namespace
}  // namespace berth::providers
