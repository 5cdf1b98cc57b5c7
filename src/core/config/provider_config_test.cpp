#include "core/config/provider_config.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

constexpr std::string_view id = "0199b2c0-0000-7000-8000-000000000001";

bj::object provider_object(const std::string& text) {
  return bj::parse(text).as_object();
}

ConfigSchema schema() {
  return *ConfigSchema::read(provider_object(R"({
    "type": "object", "additionalProperties": false,
    "properties": {
      "image": {"type": "string", "default": "debian"},
      "apiKey": {"type": "string", "format": "secret-ref"},
      "registries": {"type": "array", "items": {"type": "object", "properties": {
        "url": {"type": "string"}, "token": {"type": "string", "format": "secret-ref"}}}}}})"),
                             "/configSchema");
}

std::string reference(const std::string& version = "") {
  return R"({"type": "secret_ref", "secretId": ")" + std::string{id} + "\"" +
         (version.empty() ? "" : R"(, "version": )" + version) + "}";
}

TEST(ProviderConfig, isHeldAgainstTheSchemaWithoutWhatBerthItselfKnows) {
  const auto applied = apply_schema(
      schema(), provider_object(R"({"provider": "p", "reuseLease": true})"), "/config");
  ASSERT_TRUE(applied);
  EXPECT_EQ(*applied,
            provider_object(R"({"provider": "p", "reuseLease": true, "image": "debian"})"));
  const auto wrong = apply_schema(schema(), provider_object(R"({"imagee": "x"})"), "/config");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().issues.front().path, "/config/imagee");
}

TEST(ProviderConfig, takesReferencesIdsAndTextAtEachSecretsPlace) {
  const bj::object given = provider_object(R"({"apiKey": " sk-1 ", "registries": [
      {"url": "a", "token": )" + reference() +
                                           R"(}, {"token": "plain"}, {"token": "  "}]})");
  const auto applied = apply_schema(schema(), given, "/config");
  ASSERT_TRUE(applied) << applied.error().message;
  ConfigForStore stored = take_secrets(schema(), *applied, {});
  ASSERT_EQ(stored.refs.size(), 1U);
  EXPECT_EQ(stored.refs.front().path, "registries.0.token");
  std::vector<std::string> paths;
  for (const BoundValue& value : stored.values) paths.push_back(value.path);
  EXPECT_THAT(paths, ElementsAre("apiKey", "registries.1.token"));
  EXPECT_EQ(stored.values.front().value.reveal(), "sk-1");
  EXPECT_EQ(encode_text(stored.config).find("sk-1"), std::string::npos);

  set_secret_ref(stored, "registries.1.token", {.secret_id = *SecretId::parse(id)});
  EXPECT_EQ(*find_at(stored.config, ConfigPath::parse("registries.1.token")), bj::value(id));
}

TEST(ProviderConfig, pinsNoVersionOfASecret) {
  const auto pinned =
      apply_schema(schema(), provider_object(R"({"apiKey": )" + reference("3") + "}"), "/config");
  ASSERT_FALSE(pinned);
  EXPECT_EQ(pinned.error().code, Errc::unprocessable);
  EXPECT_EQ(pinned.error().issues.front().path, "/config/apiKey");
  EXPECT_NE(pinned.error().message.find("pins version 3"), std::string::npos);
}

TEST(ProviderConfig, findsSecretsBelowTheDriverConfigOfAPlugin) {
  const ConfigForStore stored = take_secrets(
      schema(), provider_object(R"({"pluginKey": "p", "driverConfig": {"apiKey": "sk-1"}})"),
      ConfigPath{{"driverConfig"}});
  ASSERT_EQ(stored.values.size(), 1U);
  EXPECT_EQ(stored.values.front().path, "driverConfig.apiKey");
}

TEST(ProviderConfig, spellsOutItsReferencesAndPutsValuesInTheirPlace) {
  const bj::object stored = provider_object(R"({"a": [{"token": ")" + std::string{id} +
                                            R"("}], "other": ")" + std::string{id} + "\"}");
  const SecretRef ref{.secret_id = *SecretId::parse(id)};
  const bj::object spelled = spell_out_refs(stored, {{"a.0.token", ref}, {"gone", ref}});
  const auto refs = refs_in(spelled);
  ASSERT_EQ(refs.size(), 1U);
  EXPECT_EQ(refs.front().path, "a.0.token");
  EXPECT_EQ(spelled.at("other"), bj::value(id));
  std::map<std::string, Secret> values;
  values.emplace("a.0.token", Secret{"sk-1"});
  EXPECT_EQ(*find_at(with_secrets(spelled, values), ConfigPath::parse("a.0.token")),
            bj::value("sk-1"));
}

}  // namespace
}  // namespace berth::core
