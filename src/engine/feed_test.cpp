#include "engine/feed.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using namespace std::chrono_literals;

class FeedNews : public testing::Test {
 protected:
  // Counts a wait that ends early.
  void wake_count(Task<> wait, int& count) {
    asio::co_spawn(loop_, std::move(wait),
                   [&count](const std::exception_ptr&, Result<> ended) { count += ended ? 1 : 0; });
  }
  // Runs everything that can happen without time passing.
  void settle() {
    loop_.restart();
    loop_.poll();
  }

  asio::io_context loop_;
  Feed feed_{loop_.get_executor()};
  core::RunId run_ = *core::RunId::parse("00000000-0000-7000-8000-000000000001");
  core::RunId other_ = *core::RunId::parse("00000000-0000-7000-8000-000000000002");
};

TEST_F(FeedNews, ChangesOfACompanyAreCountedAlsoWhenNobodyWaits) {
  const auto acme = *core::CompanyId::parse("00000000-0000-7000-8000-000000000003");
  const auto other = *core::CompanyId::parse("00000000-0000-7000-8000-000000000004");
  EXPECT_EQ(feed_.changes(acme), 0U);
  feed_.changed(acme);
  feed_.changed(run_);
  feed_.changed(acme);
  EXPECT_EQ(feed_.changes(acme), 2U);
  EXPECT_EQ(feed_.changes(other), 0U);
}

TEST_F(FeedNews, OutputWakesOnlyThoseWhoFollowIt) {
  int changes = 0;
  int outputs = 0;
  wake_count(feed_.wait(run_, 1h), changes);
  wake_count(feed_.wait_for_output(run_, 1h), outputs);
  settle();
  feed_.said(run_);
  settle();
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ(changes, 0);
  feed_.changed(run_);
  settle();
  EXPECT_EQ(changes, 1);
}

TEST_F(FeedNews, AChangeWakesEverybodyWhoWaitsForThatRun) {
  int changes = 0;
  int outputs = 0;
  int others = 0;
  wake_count(feed_.wait(run_, 1h), changes);
  wake_count(feed_.wait_for_output(run_, 1h), outputs);
  wake_count(feed_.wait(other_, 1h), others);
  settle();
  feed_.changed(run_);
  settle();
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(outputs, 1);
  EXPECT_EQ(others, 0);
  feed_.changed(other_);
  settle();
  EXPECT_EQ(others, 1);
}

TEST_F(FeedNews, AChangeOfAnEnvironmentIsHeardAlsoByWhoBeginsToWaitAfterIt) {
  int woken = 0;
  const std::uint64_t before = feed_.environment_changes();
  wake_count(feed_.wait_for_environments(before, 1h), woken);
  settle();
  EXPECT_EQ(woken, 0);
  feed_.environments_changed();
  settle();
  EXPECT_EQ(woken, 1);
  wake_count(feed_.wait_for_environments(before, 1h), woken);
  settle();
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace berth::engine
