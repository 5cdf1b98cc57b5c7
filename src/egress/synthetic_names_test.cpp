#include "egress/synthetic_names.hpp"

#include <gtest/gtest.h>

#include <set>

namespace berth::egress {
namespace {

std::string name(int number) {
  return "n" + std::to_string(number) + ".test";
}

TEST(EgressSyntheticNames, GivesEachNameAnAddressOfItsOwnInTheRange) {
  SyntheticNames names;
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const auto address = names.address_of(name(i));
    ASSERT_TRUE(address);
    EXPECT_TRUE(SyntheticNames::range().contains(*address)) << address->str();
    EXPECT_TRUE(seen.insert(address->str()).second) << address->str();
    ASSERT_NE(names.name_of(*address), nullptr);
    EXPECT_EQ(*names.name_of(*address), name(i));
    EXPECT_EQ(names.address_of(name(i)), address);
  }
  EXPECT_FALSE(seen.contains("198.18.0.0"));
  EXPECT_FALSE(seen.contains("198.18.0.1"));
  EXPECT_EQ(names.size(), 1000U);
}

TEST(EgressSyntheticNames, KnowsNoNameOfAnAddressThatWasNeverGiven) {
  SyntheticNames names;
  names.address_of("a.test");
  for (const char* text : {"198.18.0.0", "198.18.0.1", "198.19.255.255", "198.18.9.9", "127.0.0.1",
                           "198.20.1.0", "198.17.1.0", "::1", "::ffff:198.18.1.0"}) {
    EXPECT_EQ(names.name_of(*Address::parse(text)), nullptr) << text;
  }
}

TEST(EgressSyntheticNames, ForgetsTheNameThatWasUsedLeastRecently) {
  SyntheticNames names{3};
  const auto first = names.address_of(name(1));
  const auto second = names.address_of(name(2));
  names.address_of(name(3));
  names.name_of(*first);  // a connection also counts as a use
  names.address_of(name(4));
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(names.name_of(*second), nullptr);
  EXPECT_EQ(*names.name_of(*first), name(1));
}

TEST(EgressSyntheticNames, NeverGivesAwayTheAddressOfAnOpenConnection) {
  SyntheticNames names{2, 5};
  const auto held = names.address_of("held.test");
  const auto also = names.address_of("also.test");
  auto one = names.name_of(*held);
  auto other = names.name_of(*also);
  EXPECT_FALSE(names.address_of("more.test"));
  other.reset();
  EXPECT_TRUE(names.address_of("more.test"));
  for (int i = 0; i < 50; ++i) {
    const auto address = names.address_of(name(i));
    ASSERT_TRUE(address && *address != *held);
  }
  EXPECT_EQ(*names.name_of(*held), "held.test");
}

TEST(EgressSyntheticNames, AForgottenAddressStandsForNothingForALongTime) {
  SyntheticNames names{1};
  const auto old = names.address_of("old.test");
  for (int i = 0; i < 1'000; ++i) ASSERT_NE(names.address_of(name(i)), old);
  EXPECT_EQ(names.name_of(*old), nullptr);
}

}  // namespace
}  // namespace berth::egress
