#include "base/names.hpp"

#include <gtest/gtest.h>

namespace berth {

BOOST_DEFINE_ENUM_CLASS(Signal, stop, timed_out, operator_, default_)
enum class Gear { reverse = -1, neutral = 0, first = 7 };
BOOST_DESCRIBE_ENUM(Gear, reverse, neutral, first)

namespace {

static_assert(name_of(Signal::stop) == "stop");
static_assert(parse_name<Signal>("stop") == Signal::stop);

TEST(Names, AreTheEnumeratorsThemselves) {
  EXPECT_EQ(name_of(Signal::timed_out), "timed_out");
  EXPECT_EQ(parse_name<Signal>("timed_out"), Signal::timed_out);
}

TEST(Names, LoseTheUnderscoreThatOnlyAvoidsAKeyword) {
  EXPECT_EQ(name_of(Signal::operator_), "operator");
  EXPECT_EQ(parse_name<Signal>("operator"), Signal::operator_);
  EXPECT_EQ(parse_name<Signal>("operator_"), std::nullopt);
}

TEST(Names, RoundTripForEveryValue) {
  for (const Signal value : all<Signal>()) EXPECT_EQ(parse_name<Signal>(name_of(value)), value);
  for (const Gear value : all<Gear>()) EXPECT_EQ(parse_name<Gear>(name_of(value)), value);
  EXPECT_EQ(all<Gear>().size(), 3U);
}

TEST(Names, AreRefusedWhenTheyAreNotExactlyRight) {
  for (const std::string_view text : {"", "Stop", "STOP", " stop", "stop ", "sto", "stops", "0"}) {
    EXPECT_EQ(parse_name<Signal>(text), std::nullopt) << text;
  }
}

TEST(Names, OfAValueOutsideOfTheEnumerationAreEmpty) {
  EXPECT_EQ(name_of(static_cast<Gear>(99)), "");
}

TEST(Names, AreListedInTheirOrder) {
  EXPECT_EQ(names_of<Signal>(), "stop, timed_out, operator, default");
}

}  // namespace
}  // namespace berth
