#include "places/linux/warm_pool.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <functional>
#include <set>

namespace berth::places {
namespace {

using namespace std::chrono_literals;

// Reports what exists, and can be made to fail.
class Workbench final : public SpareMaker {
 public:
  Task<keeper::Confined> make_spare(std::string id, SpareOrder order,
                                    std::chrono::milliseconds lifetime) override {
    ++attempts;
    co_await asio::post(asio::use_awaitable);  // it takes a while
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

  // Runs the pool until the condition holds, within a bound.
  void work_until(const std::function<bool()>& is_so) {
    loop_.restart();
    for (int turn = 0; turn < 1000 && !is_so(); ++turn) loop_.run_one();
    EXPECT_TRUE(is_so());
  }
  void work_until_ready(std::size_t count) {
    work_until([&] { return bench_.there.size() == count; });
  }
  // Runs until only waiting is left.
  void settle() {
    loop_.restart();
    loop_.poll();
  }
  void stop() {
    TaskGroup group{loop_.get_executor()};
    loop_.restart();
    group.start("stop", pool_.stop());
    loop_.run();
  }

  static keeper::sandbox::Plan plan(const std::string& name) {
    keeper::sandbox::Plan made;
    made.hostname = name;
    return made;
  }
  static PoolCustomer customer(const std::string& name, PoolRequest request) {
    return {.order = {.config = {}, .plan = plan(name)}, .request = request};
  }

  static constexpr PoolRequest one{.size = 1, .age_max = 1h};
  static constexpr PoolRequest two{.size = 2, .age_max = 1h};
  asio::io_context loop_;
  SystemRandom random_;
  SystemClock clock_;
  Workbench bench_;
  WarmPool pool_{loop_.get_executor(), bench_, random_, clock_};
};

TEST_F(WarmPoolTest, MakesThemBeforeSomebodyAsks) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const auto taken = pool_.take(plan("a"));
  ASSERT_TRUE(taken);
  EXPECT_TRUE(bench_.there.contains(taken->id));
  EXPECT_EQ(taken->confined.features, std::vector<std::string>{"a"});
  EXPECT_FALSE(pool_.holds(taken->id));
}

TEST_F(WarmPoolTest, FillsUpAgainAfterOneWasTakenAndNoFurther) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  ASSERT_TRUE(pool_.take(plan("a")));
  work_until_ready(3);  // the taken one and two more
  settle();
  EXPECT_EQ(bench_.there.size(), 3U);
  EXPECT_TRUE(bench_.removed.empty());
}

TEST_F(WarmPoolTest, GivesEachOutOnce) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const auto first = pool_.take(plan("a"));
  const auto other = pool_.take(plan("a"));
  ASSERT_TRUE(first && other);
  EXPECT_NE(first->id, other->id);
  EXPECT_FALSE(pool_.take(plan("a")));
}

TEST_F(WarmPoolTest, KeepsPlansApart) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  EXPECT_FALSE(pool_.take(plan("b")));
  pool_.serve({customer("a", two), customer("b", two)});
  work_until_ready(4);
  const auto taken = pool_.take(plan("b"));
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->confined.features, std::vector<std::string>{"b"});
}

TEST_F(WarmPoolTest, HasAsManyAsAllWhoShareAPlanWishForTogether) {
  pool_.serve({customer("a", two), customer("a", one)});
  work_until_ready(3);
  settle();
  EXPECT_EQ(bench_.attempts, 3);
  pool_.serve({customer("a", one)});
  work_until_ready(1);
  settle();
  EXPECT_EQ(bench_.removed.size(), 2U);
}

TEST_F(WarmPoolTest, ASmallerWishLeavesFewer) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  pool_.serve({customer("a", one)});
  work_until_ready(1);
  EXPECT_TRUE(pool_.take(plan("a")));
}

TEST_F(WarmPoolTest, AWishThatIsWithdrawnLeavesNone) {
  pool_.serve({customer("a", two), customer("b", one)});
  work_until_ready(3);
  pool_.serve({customer("b", one)});
  EXPECT_FALSE(pool_.take(plan("a")));
  work_until_ready(1);
  EXPECT_TRUE(pool_.take(plan("b")));
}

TEST_F(WarmPoolTest, TheSameWishesAgainChangeNothing) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const std::set<std::string> before = bench_.there;
  pool_.serve({customer("a", two)});
  settle();
  EXPECT_EQ(bench_.there, before);
}

TEST_F(WarmPoolTest, RemovesWhatIsTooOldInsteadOfGivingIt) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const std::set<std::string> old = bench_.there;
  pool_.serve({customer("a", {.size = 2, .age_max = 0ms})});
  EXPECT_FALSE(pool_.take(plan("a")));
  work_until([&] { return std::ranges::includes(bench_.removed, old); });
}

TEST_F(WarmPoolTest, TheShortestAgeOfAllWhoShareAPlanCounts) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const std::set<std::string> old = bench_.there;
  const PoolCustomer strict = customer("a", {.size = 1, .age_max = 0ms});
  pool_.serve({customer("a", two), strict, customer("a", one)});
  EXPECT_FALSE(pool_.take(plan("a")));
  work_until([&] { return std::ranges::includes(bench_.removed, old); });
}

TEST_F(WarmPoolTest, MakesNoneWhereNoneIsWishedFor) {
  pool_.serve({});
  pool_.serve({customer("a", {})});
  EXPECT_FALSE(pool_.take(plan("a")));
  loop_.run();
  EXPECT_EQ(bench_.attempts, 0);
}

TEST_F(WarmPoolTest, PausesAfterAFailure) {
  bench_.fails = true;
  pool_.serve({customer("a", two)});
  work_until([&] { return bench_.attempts == 1; });
  settle();
  bench_.fails = false;
  const auto failed_at = std::chrono::steady_clock::now();
  work_until_ready(2);
  EXPECT_GE(std::chrono::steady_clock::now() - failed_at, 500ms);
}

TEST_F(WarmPoolTest, StoppedRemovesWhatIsReadyAndLeavesWhatWasTaken) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  const auto taken = pool_.take(plan("a"));
  ASSERT_TRUE(taken);
  stop();
  EXPECT_EQ(bench_.there, std::set<std::string>{taken->id});
}

TEST_F(WarmPoolTest, ItsSandboxesOutliveTheirAgeOnlyForAWhile) {
  pool_.serve({customer("a", two)});
  work_until_ready(2);
  ASSERT_FALSE(bench_.lifetimes.empty());
  EXPECT_GT(*bench_.lifetimes.begin(), 1h);
  EXPECT_LT(*bench_.lifetimes.rbegin(), 2h);
}

}  // namespace
}  // namespace berth::places
