#include "core/adapter_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

bj::object json(std::string_view text) {
  return decode_text<bj::object>(text).value();
}

Result<AdapterConfigForStore> normalize(AdapterType adapter, std::string_view text) {
  return normalize_adapter_config(adapter, json(text), PlainSecrets::allowed);
}

TEST(AdapterConfig, KeepsEveryKeyAndMakesEnvCanonical) {
  const auto stored = normalize(AdapterType::process, R"({"command": "make", "args": ["all"],
      "timeoutSec": 1.5, "x": {"y": [1]}, "env": {"A": "b"}})");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->config, json(R"({"command": "make", "args": ["all"], "timeoutSec": 1.5,
      "x": {"y": [1]}, "env": {"A": {"type": "plain", "value": "b"}}})"));
  EXPECT_TRUE(stored->refs.empty());
}

TEST(AdapterConfig, NamesTheSecretsOfItsEnv) {
  const auto stored = normalize(AdapterType::codex_local, R"({"env": {"KEY": {
      "type": "secret_ref", "secretId": "0190b5d2-7c3e-7abc-8def-0123456789ab"}}})");
  ASSERT_TRUE(stored) << stored.error().message;
  ASSERT_EQ(stored->refs.size(), 1U);
  EXPECT_EQ(stored->refs[0].path, "env.KEY");
}

TEST(AdapterConfig, OfAProcessNeedsACommand) {
  for (const std::string_view config :
       {"{}", R"({"command": null})", R"({"command": ""})", R"({"command": " \t\r\n"})"}) {
    const auto stored = normalize(AdapterType::process, config);
    ASSERT_FALSE(stored) << config;
    EXPECT_EQ(stored.error().code, Errc::unprocessable);
    EXPECT_THAT(stored.error().issues,
                ElementsAre(Issue{"/adapterConfig/command",
                                  "is required: the program that the agent runs"}));
  }
  EXPECT_TRUE(normalize(AdapterType::claude_local, "{}"));
  EXPECT_TRUE(normalize(AdapterType::codex_local, "{}"));
}

TEST(AdapterConfig, ReportsEveryWrongField) {
  const auto stored = normalize(AdapterType::claude_local, R"({
      "command": 1, "args": ["a", 2], "cwd": [], "timeoutSec": -1, "graceSec": "5", "env": [],
      "promptTemplate": {}, "model": true, "extraArgs": "x", "instructionsFilePath": 1,
      "maxTurnsPerRun": 1e300, "effort": 1, "modelReasoningEffort": 1, "search": "yes",
      "dangerouslySkipPermissions": 1, "dangerouslyBypassApprovalsAndSandbox": "true"})");
  ASSERT_FALSE(stored);
  std::vector<std::string> paths;
  for (const Issue& issue : stored.error().issues) paths.push_back(issue.path.substr(15));
  EXPECT_THAT(paths,
              ElementsAre("command", "args", "cwd", "timeoutSec", "graceSec", "env",
                          "promptTemplate", "model", "extraArgs", "instructionsFilePath",
                          "maxTurnsPerRun", "effort", "modelReasoningEffort", "search",
                          "dangerouslySkipPermissions", "dangerouslyBypassApprovalsAndSandbox"));
}

TEST(AdapterConfig, OfAProcessLeavesTheFieldsOfOtherAdaptersAlone) {
  EXPECT_TRUE(normalize(AdapterType::process, R"({"command": "x", "model": 1, "search": "no"})"));
}

TEST(AdapterConfig, RefusesNulWhereTextBecomesAnArgument) {
  for (const std::string_view config :
       {R"({"command": "a\u0000b"})", R"({"command": "x", "args": ["a\u0000b"]})",
        R"({"command": "x", "cwd": "/\u0000"})"}) {
    EXPECT_FALSE(normalize(AdapterType::process, config)) << config;
  }
}

TEST(AdapterConfig, TakesNullForAbsent) {
  EXPECT_TRUE(normalize(AdapterType::process, R"({"command": "x", "args": null, "env": null,
      "timeoutSec": null})"));
}

TEST(AdapterConfig, AddressesAWrongVariableByItsPlace) {
  const auto stored = normalize(AdapterType::process, R"({"command": "x", "env": {"A-B": "x"}})");
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().issues, ElementsAre(Issue{"/adapterConfig/env/A-B",
                                                       "Invalid environment variable name: A-B"}));
}

TEST(AdapterConfig, PassesStrictModeOnToItsEnv) {
  const bj::object config = json(R"({"command": "x", "env": {"TOKEN": "x"}})");
  EXPECT_TRUE(normalize_adapter_config(AdapterType::process, config, PlainSecrets::allowed));
  EXPECT_FALSE(normalize_adapter_config(AdapterType::process, config, PlainSecrets::refused));
}

}  // namespace
}  // namespace berth::core
