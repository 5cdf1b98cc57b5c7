#include "core/config/pattern.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Pattern, FindsItsMatchAnywhere) {
  const Pattern pattern = *Pattern::compile("[0-9]{2}");
  EXPECT_TRUE(pattern.is_found_in("a12b"));
  EXPECT_FALSE(pattern.is_found_in("a1b2"));
  EXPECT_TRUE(Pattern::compile("^.$")->is_found_in("ä"));
  EXPECT_THAT(Pattern::compile("([0-9]+)-(x)?")->groups_of("12-"), ElementsAre("12-", "12", ""));
  EXPECT_THAT(Pattern::compile("a")->groups_of("ab"), IsEmpty());
}

// Each of these would take a backtracking engine practically forever: with 4096 characters, the
// first alone needs 2 to the power of 4096 steps.
TEST(Pattern, AnswersWhereBacktrackingNeverEnds) {
  for (const char* text : {"^(a|a)*$", "^(a+)+$", "^(a?){40}a{40}$", "^(a|aa)+$", "^(.*a){20}$"}) {
    const Result<Pattern> pattern = Pattern::compile(text);
    ASSERT_TRUE(pattern) << text;
    EXPECT_FALSE(pattern->is_found_in(std::string(4095, 'a') + "b")) << text;
    EXPECT_TRUE(pattern->is_found_in(std::string(60, 'a'))) << text;
  }
}

TEST(Pattern, RefusesByNameWhatTakesBacktracking) {
  const auto reason = [](const char* text) {
    const Result<Pattern> pattern = Pattern::compile(text);
    return pattern ? "accepted" : pattern.error().message;
  };
  EXPECT_EQ(reason("^(?=.*[0-9]).+$"), "invalid perl operator: (?=");
  EXPECT_EQ(reason("^(?!x)"), "invalid perl operator: (?!");
  EXPECT_EQ(reason("(?<=x)y"), "invalid perl operator: (?<");
  EXPECT_EQ(reason("^(a)\\1$"), "invalid escape sequence: \\1");
  EXPECT_EQ(reason("(a"), "missing ): (a");
  EXPECT_NE(reason("a{1001}"), "accepted");
  EXPECT_NE(reason("((a{100}){100}){100}"), "accepted");
}

}  // namespace
}  // namespace berth::core
