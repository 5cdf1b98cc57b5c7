#include "core/config/environment_config.hpp"

#include "core/values_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

constexpr auto secret_id_text = "0190b5d2-7c3e-7abc-8def-0123456789ab";

Result<ConfigForStore> normalize_config(DriverKind driver, const bj::object& config) {
  return normalize_for_store(driver, config);
}

bj::object stored(DriverKind driver, std::string_view text) {
  Result<ConfigForStore> done = normalize_config(driver, json(text));
  EXPECT_TRUE(done) << done.error().message;
  return done ? done->config : bj::object{};
}

// The invalid fields; empty when the config was accepted.
std::vector<Issue> issues_of(DriverKind driver, const bj::object& config) {
  const Result<ConfigForStore> done = normalize_config(driver, config);
  if (done) return {};
  EXPECT_EQ(done.error().code, Errc::unprocessable);
  return done.error().issues;
}

bj::object ssh_with(std::string_view key, bj::value value) {
  bj::object config = json(R"({"host": "h", "username": "u", "remoteWorkspacePath": "/w"})");
  config[key] = std::move(value);
  return config;
}

std::vector<Issue> ssh_issues(std::string_view key, bj::value value) {
  return issues_of(DriverKind::ssh, ssh_with(key, std::move(value)));
}

TEST(LocalConfig, IsStoredAsItIs) {
  EXPECT_EQ(stored(DriverKind::local, R"({"anything": [1, " x "], "a": null})"),
            json(R"({"anything": [1, " x "], "a": null})"));
}

TEST(SshConfig, HasEightKeysInItsStoredShape) {
  const auto done = normalize_config(DriverKind::ssh, json(R"({"host": " h ", "port": "2222",
      "username": "\tu\n", "remoteWorkspacePath": " /srv/w ", "knownHosts": "", "privateKey": " ",
      "privateKeySecretRef": {"type": "secret_ref",
                              "secretId": "0190b5d2-7c3e-7abc-8def-0123456789ab"}})"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->config, json(R"({"host": "h", "port": 2222, "username": "u",
      "remoteWorkspacePath": "/srv/w", "privateKey": null,
      "privateKeySecretRef": {"type": "secret_ref", "version": "latest",
                              "secretId": "0190b5d2-7c3e-7abc-8def-0123456789ab"},
      "knownHosts": null, "strictHostKeyChecking": true})"));
  ASSERT_EQ(done->refs.size(), 1U);
  EXPECT_EQ(done->refs[0].path, "privateKeySecretRef");
  EXPECT_EQ(done->refs[0].ref.version, "latest");
  EXPECT_TRUE(done->values.empty());
}

TEST(SshConfig, HasDefaultsForAllThatIsNotRequired) {
  EXPECT_EQ(
      stored(DriverKind::ssh, R"({"host": "h", "username": "u", "remoteWorkspacePath": "/w"})"),
      json(R"({"host": "h", "port": 22, "username": "u", "remoteWorkspacePath": "/w",
                     "privateKey": null, "privateKeySecretRef": null, "knownHosts": null,
                     "strictHostKeyChecking": true})"));
}

TEST(SshConfig, InItsStoredShapeStaysAsItIs) {
  const bj::object once = stored(DriverKind::ssh, R"({"host": "h", "username": "u", "port": 23,
      "remoteWorkspacePath": "/w", "knownHosts": "h ssh-ed25519 AAAA",
      "strictHostKeyChecking": false})");
  EXPECT_EQ(normalize_config(DriverKind::ssh, once)->config, once);
}

TEST(SshConfig, SetsAPrivateKeyApartBeforeAnythingIsStored) {
  bj::object config = ssh_with("privateKey", " KEY\n");
  config["privateKeySecretRef"] = bj::object{{"type", "secret_ref"}, {"secretId", secret_id_text}};
  auto done = normalize_config(DriverKind::ssh, config);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(encode_text(done->config).contains("KEY"));
  EXPECT_TRUE(done->refs.empty()) << "the new key replaces the old reference";
  ASSERT_EQ(done->values.size(), 1U);
  EXPECT_EQ(done->values[0].path, "privateKeySecretRef");
  EXPECT_EQ(done->values[0].value.reveal(), "KEY");

  const SecretRef made{*SecretId::parse(secret_id_text)};
  set_secret_ref(*done, done->values[0].path, made);
  EXPECT_EQ(done->config.at("privateKeySecretRef"), bj::value(to_json(made)));
  EXPECT_EQ(done->refs[0].ref, made);
}

TEST(SshConfig, SaysWhatItRequiresAndListsAll) {
  const auto done = normalize_config(DriverKind::ssh, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "SSH environments require a host.");
  EXPECT_THAT(done.error().issues,
              ElementsAre(Issue{"/config/host", "SSH environments require a host."},
                          Issue{"/config/username", "SSH environments require a username."},
                          Issue{"/config/remoteWorkspacePath",
                                "SSH environments require a remote workspace path."}));
  for (const bj::value& blank : {bj::value(""), bj::value(" \t\n"), bj::value(nullptr)}) {
    EXPECT_THAT(ssh_issues("host", blank),
                ElementsAre(Issue{"/config/host", "SSH environments require a host."}));
  }
  EXPECT_THAT(ssh_issues("host", 5), ElementsAre(Issue{"/config/host", "is not a string"}));
}

TEST(SshConfig, NeedsAnAbsoluteWorkspacePath) {
  for (const char* path : {"w", "./w", "~/w", " w"}) {
    EXPECT_THAT(ssh_issues("remoteWorkspacePath", path),
                ElementsAre(Issue{"/config/remoteWorkspacePath",
                                  "SSH remote workspace path must be absolute."}));
  }
}

TEST(SshConfig, RefusesWhatSshWouldTakeForAnOption) {
  for (const char* text : {"-oProxyCommand=sh", " -x", "-"}) {
    EXPECT_THAT(ssh_issues("host", text),
                ElementsAre(Issue{"/config/host", "SSH host must not start with '-'."}));
    EXPECT_THAT(ssh_issues("username", text),
                ElementsAre(Issue{"/config/username", "SSH username must not start with '-'."}));
  }
}

TEST(SshConfig, RefusesWhatWouldSplitAWord) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"a b"sv, "a\nProxyCommand sh"sv, "a\0b"sv,
                                      "a\x7f"
                                      "b"sv}) {
    EXPECT_THAT(
        ssh_issues("host", bj::string(text)),
        ElementsAre(Issue{"/config/host", "SSH host must not hold blanks or control characters."}));
    EXPECT_THAT(ssh_issues("username", bj::string(text)),
                ElementsAre(Issue{"/config/username",
                                  "SSH username must not hold blanks or control characters."}));
  }
  EXPECT_THAT(ssh_issues("remoteWorkspacePath", "/a\nb"),
              ElementsAre(Issue{"/config/remoteWorkspacePath",
                                "SSH remote workspace path must not hold control characters."}));
  EXPECT_THAT(ssh_issues("remoteWorkspacePath", "/a b"), ElementsAre());
}

TEST(SshConfig, TakesAPortAsNumberOrText) {
  const auto port = [](bj::value value) -> std::int64_t {
    const auto done = normalize_config(DriverKind::ssh, ssh_with("port", std::move(value)));
    return done ? done->config.at("port").to_number<std::int64_t>() : -1;
  };
  EXPECT_EQ(port(1), 1);
  EXPECT_EQ(port(65535), 65535);
  EXPECT_EQ(port("2222"), 2222);
  EXPECT_EQ(port(" 22 "), 22);
  EXPECT_EQ(port(1e3), 1000);
  EXPECT_EQ(port(nullptr), 22);
  for (const bj::value& wrong :
       {bj::value(0), bj::value(65536), bj::value(-1), bj::value(22.5), bj::value(""),
        bj::value("22x"), bj::value("0"), bj::value("99999999999999999999"), bj::value(true),
        bj::value(bj::array{22}), bj::value(bj::object{})}) {
    EXPECT_EQ(port(wrong), -1) << wrong;
  }
  EXPECT_THAT(ssh_issues("port", "x"),
              ElementsAre(Issue{"/config/port", "is not an integer from 1 to 65535"}));
}

TEST(SshConfig, RefusesOtherKeysAndKinds) {
  EXPECT_THAT(ssh_issues("hots", "h"), ElementsAre(Issue{"/config/hots", "is not a known field"}));
  EXPECT_THAT(ssh_issues("strictHostKeyChecking", "yes"),
              ElementsAre(Issue{"/config/strictHostKeyChecking", "is not a boolean"}));
  EXPECT_THAT(ssh_issues("privateKey", 1),
              ElementsAre(Issue{"/config/privateKey", "is not a string"}));
  EXPECT_THAT(ssh_issues("privateKeySecretRef", secret_id_text),
              ElementsAre(Issue{"/config/privateKeySecretRef",
                                "is not a secret reference ({\"type\": \"secret_ref\", "
                                "\"secretId\": ID})"}));
}

TEST(SshConfig, ReadBackFromTheStoreHoldsNoPrivateKey) {
  const Result<SshConfig> read = parse_ssh_config(ssh_with("strictHostKeyChecking", false));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->host, "h");
  EXPECT_EQ(read->port, 22);
  EXPECT_EQ(read->username, "u");
  EXPECT_EQ(read->remote_workspace_path, "/w");
  EXPECT_EQ(read->private_key, std::nullopt);
  EXPECT_FALSE(read->strict_host_key_checking);

  const Result<SshConfig> raw = parse_ssh_config(ssh_with("privateKey", "KEY"));
  ASSERT_FALSE(raw);
  EXPECT_EQ(raw.error().code, Errc::unprocessable);
  EXPECT_FALSE(raw.error().message.contains("KEY"));
}

TEST(FakeConfig, HasThreeKeysWithDefaults) {
  for (const std::string_view config :
       {"{}", R"({"provider": "fake"})", R"({"provider": " "})", R"({"provider": null})"}) {
    const Result<bj::object> read = parse_sandbox_config(json(config));
    ASSERT_TRUE(read) << config;
    EXPECT_EQ(*read, json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": false})"));
  }
  EXPECT_EQ(*parse_sandbox_config(json(R"({"image": " debian:12 ", "reuseLease": true})")),
            json(R"({"provider": "fake", "image": "debian:12", "reuseLease": true})"));
}

TEST(FakeConfig, KeepsTheTwoOptionalFlags) {
  const bj::object config = json(R"({"provider": "fake", "image": "i", "reuseLease": false,
                                     "streamRunLogs": false, "archiveOnRelease": true})");
  EXPECT_EQ(*parse_sandbox_config(config), config);
}

TEST(FakeConfig, RefusesOtherKeysAndABlankImage) {
  const auto message = [](std::string_view text) {
    const Result<bj::object> read = parse_sandbox_config(json(text));
    return read ? "accepted" : read.error().message;
  };
  EXPECT_EQ(message(R"({"image": " "})"), "Fake sandbox environments require an image.");
  EXPECT_EQ(message(R"({"imgae": "x"})"), "/config/imgae is not a known field");
  EXPECT_EQ(message(R"({"reuseLease": 1})"), "/config/reuseLease is not a boolean");
  EXPECT_EQ(message(R"({"provider": 5})"), "/config/provider is not a string");
}

TEST(FakeConfig, CannotBeSaved) {
  for (const std::string_view config : {"{}", R"({"provider": "fake"})"}) {
    EXPECT_EQ(normalize_config(DriverKind::sandbox, json(config)).error().message,
              "Built-in fake sandbox environments are reserved for internal probes and cannot be "
              "saved.");
  }
}

TEST(SandboxConfig, LosesTheRemovedKeyAtEveryEntry) {
  EXPECT_EQ(*parse_sandbox_config(json(R"({"streamAgentSessionOutput": 1})")),
            json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": false})"));
  EXPECT_EQ(*parse_sandbox_config(json(R"({"provider": "e2b", "streamAgentSessionOutput": 1})")),
            json(R"({"provider": "e2b", "reuseLease": false})"));
  EXPECT_EQ(stored(DriverKind::sandbox, R"({"provider": "e2b", "streamAgentSessionOutput": 1})"),
            json(R"({"provider": "e2b", "reuseLease": false})"));
}

TEST(ProviderConfig, PassesForeignKeysThroughUntouched) {
  EXPECT_EQ(stored(DriverKind::sandbox, R"({"provider": " e2b ", "timeoutMs": "1800000",
                                            "template": "  base  ", "nested": {"a": [null]}})"),
            json(R"({"provider": "e2b", "timeoutMs": 1800000, "template": "  base  ",
                     "nested": {"a": [null]}, "reuseLease": false})"));
}

TEST(ProviderConfig, ReadBackFromTheStoreIsUnchanged) {
  const bj::object config = json(R"({"provider": "daytona", "reuseLease": true, "timeoutMs": 5,
      "streamRunLogs": false, "archiveOnRelease": true,
      "apiKey": "0190b5d2-7c3e-7abc-8def-0123456789ab", "custom": " x "})");
  EXPECT_EQ(*parse_sandbox_config(config), config);
}

TEST(ProviderConfig, TakesNullForAbsentInTheFieldsWeKnow) {
  EXPECT_EQ(stored(DriverKind::sandbox, R"({"provider": "e2b", "timeoutMs": null,
      "reuseLease": null, "streamRunLogs": null, "archiveOnRelease": null, "other": null})"),
            json(R"({"provider": "e2b", "reuseLease": false, "other": null})"));
}

TEST(ProviderConfig, ChecksTheFieldsWeKnowAndNamesEach) {
  EXPECT_THAT(issues_of(DriverKind::sandbox, json(R"({"provider": "E2B", "timeoutMs": 86400001,
                  "reuseLease": "no", "streamRunLogs": 1, "archiveOnRelease": []})")),
              ElementsAre(Issue{"/config/provider",
                                "must start with a lower-case letter or digit and hold only "
                                "those, '.', '-' and '_'"},
                          Issue{"/config/timeoutMs", "is not an integer from 1 to 86400000"},
                          Issue{"/config/reuseLease", "is not a boolean"},
                          Issue{"/config/streamRunLogs", "is not a boolean"},
                          Issue{"/config/archiveOnRelease", "is not a boolean"}));
  EXPECT_EQ(normalize_config(DriverKind::sandbox, json(R"({"provider": "E2B"})")).error().message,
            "/config/provider must start with a lower-case letter or digit and hold only those, "
            "'.', '-' and '_'");
}

TEST(ProviderKey, StartsWithALetterOrDigit) {
  for (const std::string_view key : {"e2b", "0", "a.b-c_d", "9-"}) {
    EXPECT_TRUE(is_provider_key(key)) << key;
  }
  for (const std::string_view key : {"", "-a", ".a", "_a", "A", "aB", "a b", "a/b", "\u00e4"}) {
    EXPECT_FALSE(is_provider_key(key)) << key;
  }
}

TEST(PluginConfig, HasThreeKeys) {
  EXPECT_EQ(stored(DriverKind::plugin, R"({"pluginKey": " acme.env ", "driverKey": "metal"})"),
            json(R"({"pluginKey": "acme.env", "driverKey": "metal", "driverConfig": {}})"));
  const bj::object config =
      json(R"({"pluginKey": "p", "driverKey": "d", "driverConfig": {"a": [" 1 "]}})");
  EXPECT_EQ(normalize_config(DriverKind::plugin, config)->config, config);
  const Result<PluginConfig> read = parse_plugin_config(config);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->plugin_key, "p");
  EXPECT_EQ(read->driver_key, "d");
  EXPECT_EQ(read->driver_config, config.at("driverConfig").as_object());
}

TEST(PluginConfig, NamesEveryWrongField) {
  EXPECT_THAT(issues_of(DriverKind::plugin, json(R"({"driverKey": "D", "driverConfig": [],
                                                     "extra": 1})")),
              ElementsAre(Issue{"/config/extra", "is not a known field"},
                          Issue{"/config/pluginKey", "Plugin environments require a plugin key."},
                          Issue{"/config/driverKey",
                                "must start with a lower-case letter or digit and hold only "
                                "those, '.', '-' and '_'"},
                          Issue{"/config/driverConfig", "is not an object"}));
}

TEST(ConfigAfterPatch, MergesKeyByKeyForTheSameDriver) {
  const bj::object old = json(R"({"a": 1, "b": {"c": 1}})");
  const bj::object change = json(R"({"b": {"d": 2}, "e": null})");
  const bj::object merged = json(R"({"a": 1, "b": {"d": 2}, "e": null})");
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, {}, change), merged);
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, DriverKind::ssh, change), merged);
}

TEST(ConfigAfterPatch, StartsAfreshForAnotherDriver) {
  const bj::object old = json(R"({"a": 1})");
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, DriverKind::local, json(R"({"b": 2})")),
            json(R"({"b": 2})"));
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, DriverKind::local, {}), bj::object{});
}

TEST(ConfigAfterPatch, KeepsWhatNobodyChanges) {
  const bj::object old = json(R"({"a": 1})");
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, {}, {}), old);
  EXPECT_EQ(config_after_patch(DriverKind::ssh, old, DriverKind::ssh, {}), old);
}

}  // namespace
}  // namespace berth::core
