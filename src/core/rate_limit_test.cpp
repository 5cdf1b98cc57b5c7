#include "core/rate_limit.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

using namespace std::chrono_literals;

constexpr Rate rate{.burst = 4, .every = 2000ms};

class RateLimitTest : public testing::Test {
 protected:
  RateVerdict take(const std::string& key = "a") { return limit_.take(key, rate, now_); }
  int granted(int asked) {
    int count = 0;
    for (int i = 0; i < asked; ++i) count += take() == RateVerdict::granted ? 1 : 0;
    return count;
  }

  RateLimit limit_;
  RateLimit::Moment now_{1h};
};

TEST_F(RateLimitTest, GrantsABurstAndThenOneTokenPerInterval) {
  EXPECT_EQ(granted(10), 4);
  now_ += 2s;
  EXPECT_EQ(granted(10), 1);
  now_ += 1h;
  EXPECT_EQ(granted(10), 4);
}

TEST_F(RateLimitTest, ReportsARowOfRefusalsOnceUntilHalfOfTheBucketIsFull) {
  EXPECT_EQ(granted(4), 4);
  EXPECT_EQ(take(), RateVerdict::first_refusal);
  EXPECT_EQ(take(), RateVerdict::refused);
  now_ += 2s;
  EXPECT_EQ(take(), RateVerdict::granted);
  EXPECT_EQ(take(), RateVerdict::refused) << "a loop goes on";
  now_ += 4s;
  EXPECT_EQ(granted(2), 2);
  EXPECT_EQ(take(), RateVerdict::first_refusal) << "a new loop";
}

TEST_F(RateLimitTest, KeepsKeysApart) {
  EXPECT_EQ(granted(10), 4);
  EXPECT_EQ(take("b"), RateVerdict::granted);
}

TEST_F(RateLimitTest, ForgetsKeysWhoseBucketIsFull) {
  for (int i = 0; i < 100'000; ++i) {
    take("key " + std::to_string(i));
    now_ += 1s;
  }
  EXPECT_LE(limit_.size(), 2048U);
}

}  // namespace
}  // namespace berth::core
