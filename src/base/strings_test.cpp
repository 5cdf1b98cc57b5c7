#include "base/strings.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Strings, OnlyLettersOfAsciiAreLowered) {
  EXPECT_EQ(lower("Content-TYPE [A-Z] \xc3\x84"), "content-type [a-z] \xc3\x84");
  EXPECT_TRUE(equal_ignoring_case("Host", "hOST"));
  EXPECT_FALSE(equal_ignoring_case("Host", "Hosts"));
  EXPECT_FALSE(equal_ignoring_case("@", "`"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));
}

TEST(Strings, OnlyTheDigitsOfAsciiAreDigits) {
  EXPECT_TRUE(is_digit('0') && is_digit('9'));
  EXPECT_FALSE(is_digit('/') || is_digit(':') || is_digit('\xb2'));
}

TEST(Strings, AreTrimmedAtBothEndsOfWhatCountsAsBlank) {
  EXPECT_EQ(trimmed(" \t\r\n a b \v\f"), "a b");
  EXPECT_EQ(trimmed(" \n "), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" a\r ", " \t"), "a\r");
}

TEST(Strings, AreJoinedWithNothingAtTheEnds) {
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"one"}), "one");
  EXPECT_EQ(joined({"one", "", "two"}), "one, , two");
  EXPECT_EQ(joined({"", "two"}, "; "), "; two");
}

}  // namespace
}  // namespace berth
