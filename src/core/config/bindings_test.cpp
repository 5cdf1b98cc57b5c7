#include "core/config/bindings.hpp"

#include "core/values_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

constexpr auto id_text = "0190b5d2-7c3e-7abc-8def-0123456789ab";
const SecretId some_secret = *SecretId::parse(id_text);

Result<EnvVars> normalize_vars(std::string_view text, PlainSecrets plain = PlainSecrets::allowed) {
  return normalize_env_vars(json(text), plain);
}

// The only issue of an `envVars` that must be rejected.
Issue issue_of(std::string_view text, PlainSecrets plain = PlainSecrets::allowed) {
  const Result<EnvVars> vars = normalize_vars(text, plain);
  if (vars || vars.error().issues.size() != 1) return {"", "accepted, or more than one issue"};
  EXPECT_EQ(vars.error().code, Errc::unprocessable);
  return vars.error().issues.front();
}

std::string ref_with(std::string_view more) {
  return R"({"type": "secret_ref", "secretId": ")" + std::string{id_text} + "\"" +
         std::string{more} + "}";
}

TEST(EnvVars, AreStoredInOneForm) {
  const Result<EnvVars> vars = normalize_vars(
      R"({"A": "x", "B": {"type": "plain", "value": ""}, "C": )" + ref_with("") + "}");
  ASSERT_TRUE(vars) << vars.error().message;
  EXPECT_EQ(vars->canonical, json(R"({
    "A": {"type": "plain", "value": "x"},
    "B": {"type": "plain", "value": ""},
    "C": {"type": "secret_ref", "secretId": "0190b5d2-7c3e-7abc-8def-0123456789ab",
          "version": "latest"}})"));
}

TEST(EnvVars, InTheirStoredFormStayAsTheyAre) {
  const auto once = normalize_vars(R"({"A": "x", "C": )" + ref_with(R"(, "version": 3)") + "}");
  ASSERT_TRUE(once);
  const auto twice = normalize_env_vars(once->canonical, PlainSecrets::allowed);
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->canonical, once->canonical);
}

TEST(EnvVars, NameTheSecretsTheyUse) {
  const auto vars = normalize_vars(R"({"A": "x", "KEY": )" + ref_with(R"(, "version": 12)") + "}");
  ASSERT_TRUE(vars);
  ASSERT_EQ(vars->refs.size(), 1U);
  EXPECT_EQ(vars->refs[0].path, "env.KEY");
  EXPECT_EQ(vars->refs[0].ref, (SecretRef{some_secret, "12"}));
}

TEST(EnvVars, RefuseWrongNames) {
  for (const std::string_view name :
       {"", "1A", "A-B", "A B", "A.B", "A=B", "\u00c4", "A\\n", "-"}) {
    const Issue issue = issue_of("{\"" + std::string{name} + "\": \"x\"}");
    EXPECT_TRUE(issue.message.starts_with("Invalid environment variable name: ")) << name;
  }
  EXPECT_EQ(issue_of(R"({"A-B": "x"})"),
            (Issue{"/envVars/A-B", "Invalid environment variable name: A-B"}));
}

TEST(EnvVars, RefuseValuesThatAreNeitherTextNorReference) {
  for (const std::string_view value :
       {"1", "true", "null", "[]", "{}", R"({"type": "plain"})", R"({"type": "plain", "value": 1})",
        R"({"value": "x"})", R"({"type": "other", "value": "x"})", R"({"type": 1})",
        R"({"type": "plain", "value": "x", "extra": 1})", R"("a\u0000b")",
        R"({"type": "plain", "value": "a\u0000b"})"}) {
    EXPECT_EQ(issue_of("{\"A\": " + std::string{value} + "}"),
              (Issue{"/envVars/A", "Invalid environment binding for key: A"}))
        << value;
  }
}

TEST(EnvVars, RefuseThePlaceholderOfARedactedValue) {
  for (const std::string_view value :
       {R"("***REDACTED***")", R"({"type": "plain", "value": "***REDACTED***"})"}) {
    EXPECT_EQ(issue_of("{\"A\": " + std::string{value} + "}"),
              (Issue{"/envVars/A", "Refusing to persist redacted placeholder for key: A"}));
  }
  EXPECT_TRUE(normalize_vars(R"({"A": "x ***REDACTED***"})"));
}

TEST(EnvVars, MustBeReferencesInStrictModeWhereTheirNameLooksSecret) {
  EXPECT_EQ(issue_of(R"({"API_KEY": "x"})", PlainSecrets::refused),
            (Issue{"/envVars/API_KEY",
                   "Strict secret mode requires secret references for sensitive key: API_KEY"}));
  EXPECT_TRUE(normalize_vars(R"({"API_KEY": "x"})", PlainSecrets::allowed));
  EXPECT_TRUE(normalize_vars(R"({"REGION": "x"})", PlainSecrets::refused));
  EXPECT_TRUE(normalize_vars("{\"API_KEY\": " + ref_with("") + "}", PlainSecrets::refused));
}

TEST(EnvVars, ReportEveryWrongOneAndSpeakOfTheFirst) {
  const auto vars = normalize_vars(R"({"1": "x", "OK": "y", "B": 2})");
  ASSERT_FALSE(vars);
  EXPECT_EQ(vars.error().message, "Invalid environment variable name: 1");
  EXPECT_THAT(vars.error().issues,
              ElementsAre(Issue{"/envVars/1", "Invalid environment variable name: 1"},
                          Issue{"/envVars/B", "Invalid environment binding for key: B"}));
}

TEST(EnvVars, AreAddressedWhereTheyStand) {
  const auto vars =
      normalize_env_vars(json(R"({"A": 1})"), PlainSecrets::allowed, "/adapterConfig/env");
  ASSERT_FALSE(vars);
  EXPECT_EQ(vars.error().issues.front().path, "/adapterConfig/env/A");
}

TEST(SecretRef, HasTheLatestVersionOrAPositiveNumber) {
  const auto version = [](std::string_view written) -> std::string {
    const auto vars =
        normalize_vars("{\"A\": " + ref_with(R"(, "version": )" + std::string{written}) + "}");
    if (vars) return vars->refs.front().ref.version;
    EXPECT_EQ(vars.error().issues.front(),
              (Issue{"/envVars/A/version", R"(is neither "latest" nor a positive integer)"}));
    return "refused";
  };
  EXPECT_EQ(version(R"("latest")"), "latest");
  EXPECT_EQ(version("1"), "1");
  EXPECT_EQ(version("9223372036854775807"), "9223372036854775807");
  for (const std::string_view wrong :
       {"0", "-1", "1.5", "\"1\"", "\"LATEST\"", "\"\"", "null", "true", "18446744073709551615"}) {
    EXPECT_EQ(version(wrong), "refused") << wrong;
  }
}

TEST(SecretRef, NeedsAnIdAndNoFieldThatIsUnknown) {
  EXPECT_EQ(issue_of(R"({"A": {"type": "secret_ref"}})"),
            (Issue{"/envVars/A/secretId", "is required"}));
  EXPECT_EQ(issue_of(R"({"A": {"type": "secret_ref", "secretId": "x"}})"),
            (Issue{"/envVars/A/secretId", "'x' is not a valid secret id"}));
  EXPECT_EQ(issue_of("{\"A\": " + ref_with(R"(, "vresion": 1)") + "}"),
            (Issue{"/envVars/A/vresion", "is not a known field"}));
}

TEST(SecretRef, IsWrittenWithItsVersionAsTextOrNumber) {
  EXPECT_EQ(to_json({some_secret, "latest"}).at("version"), "latest");
  EXPECT_EQ(to_json({some_secret, "12"}).at("version"), 12);
  EXPECT_EQ(to_json({some_secret, "12x"}).at("version"), "12x") << "never half of a version";
}

TEST(LooksSensitive, FindsItsMarksInAnyCaseAndPlace) {
  for (const std::string_view name :
       {"API_KEY", "dbPassword", "AUTH_TOKEN", "Secret", "PASSWD_FILE", "Authorization",
        "SESSION_COOKIE", "credentials"}) {
    EXPECT_TRUE(looks_sensitive(name)) << name;
  }
  for (const std::string_view name : {"", "PATH", "REGION", "PASS", "HOME", "TOK_EN"}) {
    EXPECT_FALSE(looks_sensitive(name)) << name;
  }
}

}  // namespace
}  // namespace berth::core
