#include "http/server/held_bytes.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

using Rank = BytesHolder::Rank;

const BytesHolder unknown_holder{};
const BytesHolder one{.rank = Rank::company, .name = "one"};
const BytesHolder other{.rank = Rank::company, .name = "other"};
const BytesHolder administrator{.rank = Rank::administrator};

TEST(HeldBytes, StrangersTogetherHoldAnEighth) {
  HeldBytes held{800};
  EXPECT_TRUE(held.add(unknown_holder, 100));
  EXPECT_FALSE(held.add(unknown_holder, 1));
  EXPECT_TRUE(held.add(one, 200));
  held.remove(unknown_holder, 50);
  EXPECT_TRUE(held.add(unknown_holder, 50));
}

TEST(HeldBytes, ACompanyHoldsAQuarterAndLeavesTheRestToOthers) {
  HeldBytes held{800};
  EXPECT_TRUE(held.add(one, 200));
  EXPECT_FALSE(held.add(one, 1));
  EXPECT_TRUE(held.add(other, 200));
  held.remove(one, 200);
  EXPECT_TRUE(held.add(one, 200));
}

TEST(HeldBytes, TheLastEighthIsForAdministrators) {
  HeldBytes held{800};
  for (const char* name : {"1", "2", "3"}) {
    EXPECT_TRUE(held.add({.rank = Rank::company, .name = name}, 200));
  }
  EXPECT_TRUE(held.add(unknown_holder, 100));
  EXPECT_FALSE(held.add(one, 1));
  EXPECT_TRUE(held.add(administrator, 100));
  EXPECT_FALSE(held.add(administrator, 1));
}

}  // namespace
}  // namespace berth::http
