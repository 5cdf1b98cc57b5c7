#include "base/assert.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(AssertDeathTest, EndsTheProcessAndSaysWhatDoesNotHold) {
  const int floor = 3;
  EXPECT_DEATH(BERTH_ASSERT(floor == 4), "berth: bug: floor == 4 does not hold at .*assert_test");
}

TEST(Assert, LooksOnceAndGoesOnWhenItHolds) {
  int looks = 0;
  BERTH_ASSERT(++looks == 1);
  EXPECT_EQ(looks, 1);
}

}  // namespace
}  // namespace berth
