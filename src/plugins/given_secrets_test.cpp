#include "plugins/given_secrets.hpp"

#include <gtest/gtest.h>

namespace berth::plugins {
namespace {

std::vector<Secret> secrets(std::initializer_list<std::string_view> values) {
  std::vector<Secret> out;
  for (const std::string_view value : values) out.emplace_back(value);
  return out;
}

class GivenSecretsTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  GivenSecrets given_{clock_, {.remembered_for = std::chrono::minutes{10}, .remembered_max = 2}};
};

TEST_F(GivenSecretsTest, HidesAValueInFlightAndAWhileAfterIt) {
  {
    const auto held = given_.hold(secrets({"PLANTED-secret"}));
    EXPECT_EQ(given_.clean("a PLANTED-secret b"), "a ***REDACTED*** b");
    clock_.advance(std::chrono::hours{5});
    EXPECT_EQ(given_.clean("PLANTED-secret"), "***REDACTED***");
  }
  clock_.advance(std::chrono::minutes{9});
  const auto other = given_.hold(secrets({"another-secret"}));
  EXPECT_EQ(given_.clean("PLANTED-secret"), "***REDACTED***");
}

TEST_F(GivenSecretsTest, ForgetsTheOldestBeyondItsLimits) {
  for (const std::string_view value : {"first-value", "second-value", "third-value"}) {
    const auto held = given_.hold(secrets({value}));
    clock_.advance(std::chrono::seconds{1});
  }
  const auto held = given_.hold(secrets({"fourth-value"}));
  EXPECT_EQ(given_.clean("first-value"), "first-value");
  EXPECT_EQ(given_.clean("second-value third-value"), "***REDACTED*** ***REDACTED***");
}

TEST_F(GivenSecretsTest, KeepsEveryValueInFlightWhateverTheLimitsAre) {
  const auto held = given_.hold(secrets({"value-1", "value-2", "value-3", "value-4"}));
  EXPECT_EQ(given_.clean("value-1"), "***REDACTED***");
  EXPECT_EQ(given_.clean("value-4"), "***REDACTED***");
}

TEST_F(GivenSecretsTest, HidesAValueThatHoldsAnotherOneAsAWhole) {
  const auto held = given_.hold(secrets({"inner", "outer-inner-outer"}));
  EXPECT_EQ(given_.clean("outer-inner-outer inner"), "***REDACTED*** ***REDACTED***");
}

TEST_F(GivenSecretsTest, AStreamHidesAValueHoweverItIsCut) {
  const auto held = given_.hold(secrets({"PLANTED-secret", "secret-of-another"}));
  GivenSecrets::Stream stream{given_};
  std::string out;
  for (const char c : std::string_view{"a PLANTED-secret secret-of-another b"}) {
    out += stream.push(std::string_view{&c, 1});
  }
  out += stream.push(" PLAN");
  out += stream.flush();
  EXPECT_EQ(out.find("of-another"), std::string::npos) << out;
  EXPECT_EQ(out.find("PLANTED"), std::string::npos) << out;
  EXPECT_TRUE(out.starts_with("a ***REDACTED***")) << out;
  EXPECT_TRUE(out.ends_with(" b PLAN")) << out;
}

TEST_F(GivenSecretsTest, AStreamHidesWhatTheWorkerIsGivenWhileItRunsAndForgetsNothing) {
  GivenSecrets::Stream stream{given_};
  EXPECT_EQ(stream.push("before "), "before ");
  {
    const auto held = given_.hold(secrets({"PLANTED-secret"}));
    EXPECT_EQ(stream.push("PLANTED-secret "), "***REDACTED*** ");
  }
  clock_.advance(std::chrono::hours{1});
  const auto other = given_.hold(secrets({"another-secret"}));
  EXPECT_EQ(stream.push("PLANTED-secret another-secret.") + stream.flush(),
            "***REDACTED*** ***REDACTED***.");
}

TEST_F(GivenSecretsTest, CleansKeysAndTextsOfMeta) {
  const auto held = given_.hold(secrets({"tok\"en-value"}));
  const bj::value meta = bj::object{{"env", bj::array{"A=tok\"en-value", 3}},
                                    {"tok\"en-value", true},
                                    {"json", R"({"k":"tok\"en-value"})"}};
  EXPECT_EQ(encode_text(given_.clean_json(meta)),
            R"({"env":["A=***REDACTED***",3],"***REDACTED***":true,)"
            R"("json":"{\"k\":\"***REDACTED***\"}"})");
}

TEST_F(GivenSecretsTest, ATextThatWasCutShowsNoHalfOfAValue) {
  const auto held = given_.hold(secrets({"PLANTED-secret"}));
  EXPECT_EQ(given_.clean_beginning("line with PLANTED-se"), "line with ");
  EXPECT_EQ(given_.clean("line with PLANTED-se"), "line with PLANTED-se");
}

}  // namespace
}  // namespace berth::plugins
