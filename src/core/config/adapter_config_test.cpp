#include "core/config/adapter_config.hpp"

#include "core/config/adapter_schema.hpp"
#include "core/config/adapters.hpp"
#include "core/config/config_schema.hpp"
#include "core/values_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

Result<AdapterConfigForStore> normalize(AdapterType adapter, std::string_view text) {
  return normalize_adapter_config(adapter, json(text), PlainSecrets::allowed);
}

TEST(AdapterConfig, KeepsEveryKeyAndMakesEnvCanonical) {
  const auto stored = normalize(AdapterType::process, R"({"command": "make", "args": ["all"],
      "timeoutSec": 1.5, "env": {"A": "b"}})");
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(stored->config, json(R"({"command": "make", "args": ["all"], "timeoutSec": 1.5,
      "env": {"A": {"type": "plain", "value": "b"}}})"));
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

std::vector<std::string> wrong_paths(AdapterType adapter, std::string_view config) {
  const auto stored = normalize(adapter, config);
  std::vector<std::string> paths;
  if (stored) return paths;
  for (const Issue& issue : stored.error().issues) paths.push_back(issue.path.substr(15));
  return paths;
}

TEST(AdapterConfig, ReportsEveryWrongField) {
  EXPECT_THAT(wrong_paths(AdapterType::claude_local, R"({
      "command": 1, "cwd": [], "timeoutSec": -1, "graceSec": "5", "env": [],
      "promptTemplate": {}, "model": true, "extraArgs": "x", "instructionsFilePath": 1,
      "instructions": 2, "maxTurnsPerRun": 1e300, "effort": 1, "permissionMode": "all",
      "dangerouslySkipPermissions": 1})"),
              testing::UnorderedElementsAre(
                  "command", "cwd", "timeoutSec", "graceSec", "env", "promptTemplate", "model",
                  "extraArgs", "instructionsFilePath", "instructions", "maxTurnsPerRun", "effort",
                  "permissionMode", "dangerouslySkipPermissions"));
  EXPECT_THAT(
      wrong_paths(AdapterType::codex_local, R"({
      "modelReasoningEffort": 1, "search": "yes", "networkAccess": 1,
      "dangerouslyBypassApprovalsAndSandbox": "true", "permissionMode": "acceptEdits"})"),
      testing::UnorderedElementsAre("modelReasoningEffort", "search", "networkAccess",
                                    "dangerouslyBypassApprovalsAndSandbox", "permissionMode"));
  EXPECT_THAT(wrong_paths(AdapterType::process, R"({"command": "x", "args": ["a", 2]})"),
              ElementsAre("args"));
}

TEST(AdapterConfig, RefusesAnUnknownKeyAndNamesTheNearestOne) {
  const auto issue_of = [](AdapterType adapter, std::string_view config) {
    const auto stored = normalize(adapter, config);
    return stored ? Issue{} : stored.error().issues.at(0);
  };
  EXPECT_EQ(
      issue_of(AdapterType::claude_local, R"({"modle": "opus"})"),
      (Issue{"/adapterConfig/modle", "is not a setting of claude_local; did you mean model?"}));
  EXPECT_EQ(issue_of(AdapterType::claude_local, R"({"max_turns": 3})"),
            (Issue{"/adapterConfig/max_turns",
                   "is not a setting of claude_local; did you mean maxTurnsPerRun?"}));
  EXPECT_EQ(issue_of(AdapterType::codex_local, R"({"effort": "low"})"),
            (Issue{"/adapterConfig/effort",
                   "is not a setting of codex_local; did you mean modelReasoningEffort?"}));
  EXPECT_EQ(issue_of(AdapterType::process, R"({"command": "x", "bogus": 1})"),
            (Issue{"/adapterConfig/bogus", "is not a setting of process"}));
  const std::string long_key(100'000, 'x');
  EXPECT_THAT(
      issue_of(AdapterType::process, R"({"command": "x", ")" + long_key + R"(": 1})").message,
      "is not a setting of process");
}

TEST(AdapterConfig, KeepsUnknownKeysThatAnOlderServerStored) {
  const bj::object stored = json(R"({"command": "x", "bogus": 1})");
  const auto kept = normalize_adapter_config(
      AdapterType::process, json(R"({"command": "y", "bogus": 2})"), PlainSecrets::allowed, stored);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->config.at("bogus"), 2);
  EXPECT_FALSE(normalize_adapter_config(AdapterType::process,
                                        json(R"({"command": "y", "other": 2})"),
                                        PlainSecrets::allowed, stored));
}

TEST(AdapterConfig, BoundsItsInstructions) {
  const std::string long_text(instructions_bytes_max + 1, 'x');
  EXPECT_FALSE(normalize(AdapterType::claude_local, R"({"instructions": ")" + long_text + R"("})"));
  EXPECT_TRUE(normalize(AdapterType::claude_local,
                        R"({"instructions": ")" + long_text.substr(1) + R"("})"));
}

TEST(AdapterConfig, HasASchemaThatNamesEachField) {
  for (const AdapterDescription& adapter : describe_adapters()) {
    const bj::object& properties = adapter.config_schema.at("properties").as_object();
    for (const auto& [key, value] : properties) {
      EXPECT_FALSE(value.at("title").as_string().empty()) << key;
      EXPECT_FALSE(value.at("description").as_string().empty()) << key;
    }
    EXPECT_TRUE(ConfigSchema::read(adapter.config_schema, "")) << adapter.title;
  }
  const bj::object claude = describe_adapters().at(1).config_schema;
  EXPECT_EQ(claude.at("properties").at("permissionMode").at("default"), "bypass");
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
