#include "cli/sandbox_shortfall.hpp"

#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bj::object object(std::string_view text) {
  return parse_json(text).value().as_object();
}

// As for an ordinary user without control groups.
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

TEST(ShortfallsOf, AreALineForEachRemedy) {
  EXPECT_THAT(
      shortfalls_of({}, without_control_groups()),
      ElementsAre("not in force: uid-range: not root; fix: be root",
                  "not in force: memory limit of 67108864 bytes, swap limit of 0 bytes: no memory; "
                  "limit of 20 processes: no pids; CPU limit of 500 thousandths: no cpu; "
                  "fix: delegate"));
  EXPECT_TRUE(shortfalls_of({}, object(R"({"level": "strong"})")).empty());
}

TEST(ShortfallsOf, NameTheFlagThatTookAWallAway) {
  const bj::object isolation = object(R"({"level": "weak", "missing": [
      {"feature": "network-namespace", "reason": "a", "remedy": "drop the weakening"},
      {"feature": "namespace-filter", "reason": "b", "remedy": "drop the weakening"},
      {"feature": "ptrace-filter", "reason": "c", "remedy": "drop the weakening"}]})");
  const bj::object config =
      object(R"({"network": "host", "allow": ["ptrace", "nested_user_namespaces"]})");
  EXPECT_THAT(shortfalls_of(config, isolation),
              ElementsAre("not in force: network-namespace: a; fix: leave out --net host",
                          "not in force: namespace-filter: b; fix: leave out --weaken "
                          "nested_user_namespaces",
                          "not in force: ptrace-filter: c; fix: leave out --weaken ptrace"));
}

TEST(ShortfallsOf, NameNoFlagWhereItIsNotTheCause) {
  const bj::object isolation = object(R"({"level": "minimal", "missing": [
      {"feature": "network-namespace", "reason": "a", "remedy": "x; run the server as root"}]})");
  EXPECT_THAT(shortfalls_of(object(R"({"network": "host"})"), isolation),
              ElementsAre("not in force: network-namespace: a; fix: x; run berth as root"));
}

TEST(ForOneCommand, TellsNoRemedyTwiceAndNoneForAServer) {
  const Error told = for_one_command(
      {Errc::isolation_too_weak, "too weak", "run the server as root; delegate; delegate; wait"});
  EXPECT_EQ(told.code, Errc::isolation_too_weak);
  EXPECT_EQ(told.message, "too weak");
  EXPECT_EQ(told.remedy, "run berth as root; delegate; wait");
  EXPECT_EQ(for_one_command({Errc::io_failed, "no disk"}).remedy, "");
}

TEST(WereTold, IsTrueForWhatWasToldBeforeAndNeverWhereItCannotBeKept) {
  const tests::TemporaryFolder folder;
  const Variables variables{{"XDG_STATE_HOME", folder.path() + "/state"}};
  EXPECT_FALSE(were_told({"one", "two"}, variables));
  EXPECT_TRUE(were_told({"one", "two"}, variables));
  EXPECT_TRUE(were_told({"two"}, variables));
  EXPECT_FALSE(were_told({"two", "three"}, variables));
  EXPECT_FALSE(were_told({"one"}, {{"XDG_STATE_HOME", "/dev/null"}}));
  EXPECT_FALSE(were_told({"one"}, {{"XDG_STATE_HOME", "/dev/null"}}));
  EXPECT_FALSE(were_told({"one"}, {}));
}

}  // namespace
}  // namespace berth::cli
