#include "plugins/manifest/manifest.hpp"

#include <boost/json/parse.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace berth::plugins {
namespace {

bj::object good() {
  return bj::parse(R"({
    "id": "acme.boxes", "apiVersion": 1, "version": "1.2.3-rc.1+7", "displayName": "Boxes",
    "description": "Boxes by Acme", "author": "Acme", "categories": ["connector"],
    "capabilities": ["environment.drivers.register"], "entrypoints": {"worker": "dist/worker.js"},
    "environmentDrivers": [{"driverKey": "boxes", "kind": "sandbox_provider",
      "displayName": "Boxes", "configSchema": {"type": "object"}}]
  })")
      .as_object();
}

bj::object& driver_of(bj::object& manifest) {
  return manifest["environmentDrivers"].as_array()[0].as_object();
}

std::vector<Issue> issues_of(const bj::value& manifest) {
  const Result<Manifest> read = parse_manifest(manifest);
  if (read) return {};
  EXPECT_EQ(read.error().code, Errc::plugin_manifest_invalid);
  return read.error().issues;
}

::testing::AssertionResult refuses(const bj::value& manifest, std::string_view pointer,
                                   std::string_view rule) {
  const std::vector<Issue> issues = issues_of(manifest);
  std::string all;
  for (const Issue& issue : issues) {
    all += issue.path + " " + issue.message + "\n";
    if (issue.path == pointer && issue.message.starts_with(std::string{rule} + ": ")) {
      return ::testing::AssertionSuccess();
    }
  }
  return ::testing::AssertionFailure() << "expected " << rule << " at " << pointer << ", got:\n"
                                       << all;
}

TEST(Manifest, ThatKeepsEveryRuleIsRead) {
  const Result<Manifest> read = parse_manifest(good());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->id, "acme.boxes");
  EXPECT_EQ(read->worker_entrypoint, "dist/worker.js");
  const DriverDeclaration* driver = read->find_driver("boxes");
  ASSERT_NE(driver, nullptr);
  EXPECT_EQ(driver->kind, DriverRole::sandbox_provider);
  EXPECT_EQ(read->find_driver("other"), nullptr);
}

TEST(Manifest, NamesAllThatIsMissing) {
  const std::vector<Issue> issues = issues_of(bj::object{});
  for (const std::string_view key :
       {"/id", "/apiVersion", "/version", "/displayName", "/description", "/author", "/categories",
        "/capabilities", "/entrypoints"}) {
    EXPECT_TRUE(std::ranges::any_of(issues, [&](const Issue& issue) {
      return issue.path == key && issue.message.starts_with("required: ");
    })) << key;
  }
}

struct Broken {
  const char* name;
  const char* key;
  const char* value;
  const char* pointer;
  const char* rule;
};

class BrokenField : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenField, IsRefusedWithItsRuleAndPath) {
  const Broken& broken = GetParam();
  bj::object manifest = good();
  manifest[broken.key] = bj::parse(broken.value);
  EXPECT_TRUE(refuses(manifest, broken.pointer, broken.rule));
}

INSTANTIATE_TEST_SUITE_P(
    Manifest, BrokenField,
    ::testing::Values(
        Broken{"scope", "id", R"("@acme/boxes")", "/id", "pattern"},
        Broken{"upper", "id", R"("Acme")", "/id", "pattern"},
        Broken{"id_type", "id", "7", "/id", "type"},
        Broken{"api", "apiVersion", "2", "/apiVersion", "api-version"},
        Broken{"api_text", "apiVersion", R"("1")", "/apiVersion", "api-version"},
        Broken{"v", "version", R"("v1.2.3")", "/version", "semver"},
        Broken{"two_numbers", "version", R"("1.2")", "/version", "semver"},
        Broken{"empty_name", "displayName", R"("")", "/displayName", "length"},
        Broken{"category", "categories", R"(["game"])", "/categories/0", "known-name"},
        Broken{"no_category", "categories", "[]", "/categories", "count"},
        Broken{"capability", "capabilities", R"(["environment.drivers.register", "root.access"])",
               "/capabilities/1", "known-name"},
        Broken{"worker", "entrypoints", "{}", "/entrypoints/worker", "required"},
        Broken{"minimum", "minimumHostVersion", R"("latest")", "/minimumHostVersion", "semver"},
        Broken{"schema", "instanceConfigSchema", R"({"title": "x"})", "/instanceConfigSchema",
               "schema-shape"},
        Broken{"schema_types", "instanceConfigSchema", R"({"type": ["object", "null"]})",
               "/instanceConfigSchema/type", "schema-shape"},
        Broken{"jobs", "jobs", R"([{"jobKey": "a", "displayName": "A", "schedule": "@daily"}])",
               "/jobs/0/schedule", "cron"},
        Broken{"jobs_need", "jobs", R"([{"jobKey": "a", "displayName": "A"}])", "/capabilities",
               "capability-needed"},
        Broken{"tools_twice", "tools", R"([{"name": "t"}, {"name": "t"}])", "/tools/1/name",
               "unique"},
        Broken{"route", "apiRoutes", R"([{"routeKey": "r", "method": "PUT"}])",
               "/apiRoutes/0/method", "one-of"},
        Broken{"database", "database", R"({"migrationsDir": "../up"})", "/database/migrationsDir",
               "relative-path"},
        Broken{"ui", "ui", R"({"slots": [{"id": "s", "type": "page"}]})", "/entrypoints/ui",
               "required"}),
    [](const auto& test) { return test.param.name; });

TEST(Manifest, DriversAreStrictButUnknownTopLevelKeysAreDropped) {
  bj::object manifest = good();
  manifest["homepage"] = "somewhere";
  const Result<Manifest> read = parse_manifest(manifest);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->document.contains("homepage"));
  driver_of(manifest)["homepage"] = "somewhere";
  EXPECT_TRUE(refuses(manifest, "/environmentDrivers/0/homepage", "unknown-key"));
}

TEST(Manifest, DriverKeysAreUnique) {
  bj::object manifest = good();
  auto& drivers = manifest["environmentDrivers"].as_array();
  drivers.push_back(drivers[0]);
  EXPECT_TRUE(refuses(manifest, "/environmentDrivers/1/driverKey", "unique"));
}

TEST(Manifest, TheNestedWordAboutReuseBeatsTheOldOne) {
  bj::object manifest = good();
  driver_of(manifest)["supportsReusableLeases"] = true;
  EXPECT_EQ(parse_manifest(manifest)->drivers[0].capabilities.reusable_leases, true);
  driver_of(manifest)["sandboxCapabilities"] = bj::object{{"reusableLeases", false}};
  EXPECT_EQ(parse_manifest(manifest)->drivers[0].capabilities.reusable_leases, false);
}

TEST(Manifest, ADriverMayReachItsSandboxesThroughABridge) {
  bj::object manifest = good();
  driver_of(manifest)["bridge"] = bj::object{{"transport", "worker"}};
  EXPECT_TRUE(parse_manifest(manifest));
  driver_of(manifest)["bridge"] = bj::object{{"transport", "pigeon"}};
  EXPECT_TRUE(refuses(manifest, "/environmentDrivers/0/bridge/transport", "one-of"));
}

TEST(Manifest, ACapabilityOfTomorrowIsAWarning) {
  bj::object manifest = good();
  driver_of(manifest)["sandboxCapabilities"] =
      bj::object{{"timeTravel", true}, {"runnerWebSocketIngress", true}};
  const Result<Manifest> read = parse_manifest(manifest);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->warnings.size(), 1U);
  EXPECT_EQ(read->warnings[0].path, "/environmentDrivers/0/sandboxCapabilities/timeTravel");
  EXPECT_TRUE(read->drivers[0].runner_web_socket_ingress);
}

TEST(Manifest, TheOldNameOfLoginIsFoldedIntoTheNew) {
  bj::object manifest = good();
  driver_of(manifest)["supportsSetupTokenLogin"] = true;
  const Result<Manifest> read = parse_manifest(manifest);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->drivers[0].supports_login_pty);
  const bj::value& handed = read->document.at("environmentDrivers").as_array()[0];
  EXPECT_FALSE(handed.as_object().contains("supportsSetupTokenLogin"));
  EXPECT_EQ(handed.at("supportsLoginPty"), true);
  driver_of(manifest)["supportsLoginPty"] = false;
  EXPECT_TRUE(refuses(manifest, "/environmentDrivers/0/supportsSetupTokenLogin", "alias"));
}

TEST(Manifest, ATemplateIsNotBoundToTheHostSOwnField) {
  bj::object manifest = good();
  driver_of(manifest)["templateConfigBinding"] = bj::parse(R"({"field": "provider"})");
  EXPECT_TRUE(refuses(manifest, "/environmentDrivers/0/templateConfigBinding/field", "reserved"));
  driver_of(manifest)["templateConfigBinding"] =
      bj::parse(R"({"field": "image", "unsetFields": ["a", "image", "a"]})");
  EXPECT_TRUE(
      refuses(manifest, "/environmentDrivers/0/templateConfigBinding/unsetFields/1", "distinct"));
  EXPECT_TRUE(
      refuses(manifest, "/environmentDrivers/0/templateConfigBinding/unsetFields/2", "unique"));
}

TEST(Versions, AreOrderedAsSemanticVersioningSays) {
  const auto rising = std::to_array<std::string_view>(
      {"1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2",
       "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"});
  for (std::size_t i = 0; i < rising.size(); ++i) {
    ASSERT_TRUE(is_semantic_version(rising[i]));
    for (std::size_t j = 0; j < rising.size(); ++j) {
      const int order = compare_versions(rising[i], rising[j]);
      EXPECT_EQ(order < 0, i < j) << rising[i] << " " << rising[j];
      EXPECT_EQ(order == 0, i == j) << rising[i] << " " << rising[j];
    }
  }
  EXPECT_EQ(compare_versions("1.0.0+a", "1.0.0+b"), 0);
}

TEST(Versions, APluginForANewerHostIsRefused) {
  bj::object manifest = good();
  manifest["minimumPaperclipVersion"] = "2026.900.0";
  const Result<Manifest> read = parse_manifest(manifest);
  ASSERT_TRUE(read);
  EXPECT_FALSE(check_host_version(*read, "2026.899.9"));
  EXPECT_TRUE(check_host_version(*read, "2026.900.0"));
}

}  // namespace
}  // namespace berth::plugins
