#include "cli/sandbox_shortfall.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bj::object object(std::string_view text) {
  return parse_json(text).value().as_object();
}

// As an ordinary user without control groups has it.
bj::object without_control_groups() {
  return object(R"({"level": "weak", "missing": [
      {"feature": "uid-range", "reason": "not root", "remedy": "be root"},
      {"feature": "memory limit of 67108864 bytes", "reason": "no memory", "remedy": "delegate"},
      {"feature": "swap limit of 0 bytes", "reason": "no memory", "remedy": "delegate"},
      {"feature": "limit of 20 processes", "reason": "no pids", "remedy": "delegate"},
      {"feature": "CPU limit of 500 thousandths", "reason": "no cpu", "remedy": "delegate"}]})");
}

TEST(ExpectLimitsInForce, RefusesALimitThatWasAskedForAndDoesNotHold) {
  struct Case {
    std::string_view config, flag;
  };
  const Case cases[] = {{R"({"memoryMb": 64})", "--memory"},
                        {R"({"pids": 20})", "--pids"},
                        {R"({"cpus": 0.5})", "--cpus"}};
  for (const Case& c : cases) {
    const Result<> held = expect_limits_in_force(object(c.config), without_control_groups());
    ASSERT_FALSE(held) << c.flag;
    EXPECT_EQ(held.error().code, Errc::isolation_too_weak);
    EXPECT_THAT(held.error().message, HasSubstr(std::string{c.flag}));
    EXPECT_THAT(held.error().remedy, HasSubstr("delegate"));
    EXPECT_THAT(held.error().remedy, HasSubstr("--min-isolation"));
  }
}

TEST(ExpectLimitsInForce, LeavesLimitsThatNobodyAskedForAndThoseWhoSayWhatWillDo) {
  EXPECT_TRUE(expect_limits_in_force(object("{}"), without_control_groups()));
  EXPECT_TRUE(expect_limits_in_force(object(R"({"memoryMb": 64, "minIsolation": "weak"})"),
                                     without_control_groups()));
  EXPECT_TRUE(expect_limits_in_force(object(R"({"memoryMb": 64, "pids": 20, "cpus": 0.5})"),
                                     object(R"({"level": "strong", "missing": []})")));
}

TEST(ShortfallsOf, AreALineForEachCause) {
  EXPECT_THAT(
      shortfalls_of(without_control_groups()),
      ElementsAre("not in force: uid-range: not root; fix: be root",
                  "not in force: memory limit of 67108864 bytes, swap limit of 0 bytes: no memory; "
                  "fix: delegate",
                  "not in force: limit of 20 processes: no pids; fix: delegate",
                  "not in force: CPU limit of 500 thousandths: no cpu; fix: delegate"));
  EXPECT_TRUE(shortfalls_of(object(R"({"level": "strong"})")).empty());
}

}  // namespace
}  // namespace berth::cli
