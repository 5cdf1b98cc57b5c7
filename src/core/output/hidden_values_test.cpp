#include "core/output/hidden_values.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

TEST(HiddenValuesTest, KeepsAValueOnceHoweverOftenItIsGiven) {
  HiddenValues values;
  EXPECT_TRUE(values.add(Secret{"the value"}));
  for (int i = 0; i < 400; ++i) EXPECT_FALSE(values.add(Secret{"the value"}));
  EXPECT_TRUE(values.add(Secret{"another value"}));
  EXPECT_EQ(values.all().size(), 2U);
}

TEST(HiddenValuesTest, RejectsAValueThatIsTooShortToBeHidden) {
  HiddenValues values;
  EXPECT_FALSE(values.add(Secret{"abc"}));
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace berth::core
