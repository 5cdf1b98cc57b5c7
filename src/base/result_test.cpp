#include "base/result.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace berth {
namespace {

Result<int> half_of(int number) {
  if (number % 2 == 0) return number / 2;
  return fail(Errc::unprocessable, std::to_string(number) + " is odd", "double it");
}

Result<int> quarter_of(int number) {
  BERTH_TRY(const int half, half_of(number));
  BERTH_TRY(const int quarter, half_of(half));
  return quarter;
}

Result<> check(int number, int& steps) {
  ++steps;
  BERTH_TRY([[maybe_unused]] const int half, half_of(number));
  return {};
}

Result<> check_both(int first, int second, int& steps) {
  BERTH_DO(check(first, steps));
  BERTH_DO(check(second, steps));
  return {};
}

Result<std::unique_ptr<int>> boxed(int number) {
  BERTH_TRY(int value, half_of(number));
  return std::make_unique<int>(value);
}

Result<int> unboxed(int number) {
  BERTH_TRY(const std::unique_ptr<int> box, boxed(number));
  return *box;
}

TEST(Try, BindsTheValueOfEachStep) {
  EXPECT_EQ(quarter_of(12), 3);
}

TEST(Try, LeavesWithTheErrorOfTheStepThatFailed) {
  const Result<int> result = quarter_of(6);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), (Error{Errc::unprocessable, "3 is odd", "double it"}));
}

TEST(Try, MovesValuesThatCannotBeCopied) {
  EXPECT_EQ(unboxed(8), 4);
  EXPECT_EQ(unboxed(7).error().message, "7 is odd");
}

TEST(Do, GoesOnAfterASuccess) {
  int steps = 0;
  EXPECT_TRUE(check_both(2, 4, steps));
  EXPECT_EQ(steps, 2);
}

TEST(Do, TakesNoStepAfterAFailure) {
  int steps = 0;
  const Result<> result = check_both(1, 4, steps);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "1 is odd");
  EXPECT_EQ(steps, 1);
}

TEST(Error, IsABugUnlessItSaysOtherwise) {
  EXPECT_EQ(Error{}.code, Errc::bug);
}

TEST(Errc, HasTheSpellingOfItsEnumerator) {
  EXPECT_EQ(name_of(Errc::environment_not_found), "environment_not_found");
  EXPECT_EQ(name_of(Errc::timed_out), "timed_out");
}

}  // namespace
}  // namespace berth
