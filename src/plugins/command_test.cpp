#include "plugins/command.hpp"

#include <gtest/gtest.h>

namespace berth::plugins {
namespace {

Manifest provider(const std::string& driver_key) {
  Manifest manifest{.id = "m", .capabilities = {"environment.drivers.register"}};
  manifest.drivers.push_back({.driver_key = driver_key});
  return manifest;
}

const HostEnvironment host{{"PATH", "/bin"},
                           {"HOME", "/root"},
                           {"OPENAI_API_KEY", "o"},
                           {"E2B_API_KEY", "e"},
                           {"GEMINI_API_KEY", "   "},
                           {"BERTH_MASTER_KEY", "secret"},
                           {"PAPERCLIP_PLUGIN_ID", "x"}};

TEST(WorkerEnvironment, HoldsTheFixedVariablesAndNothingOfTheHostS) {
  const Manifest plain{.id = "m", .capabilities = {"plugin.state.read"}};
  const auto env = worker_environment(plain, {.folder = "/p"}, "id", host);
  EXPECT_EQ(env.at("PATH"), "/bin");
  EXPECT_EQ(env.at("PAPERCLIP_PLUGIN_ID"), "id");
  EXPECT_EQ(env.at("NODE_ENV"), "production");
  EXPECT_EQ(env.at("TZ"), "UTC");
  EXPECT_EQ(env.size(), 7U);
}

TEST(WorkerEnvironment, PassesKeysOfModelsToEnvironmentDriversUnlessTheyAreBlank) {
  const auto env = worker_environment(provider("x"), {.folder = "/p"}, "id", host);
  EXPECT_EQ(env.at("OPENAI_API_KEY"), "o");
  EXPECT_FALSE(env.contains("GEMINI_API_KEY"));
  EXPECT_FALSE(env.contains("BERTH_MASTER_KEY"));
}

TEST(WorkerEnvironment, PassesAProviderSKeyToItsOwnTrustedPackageOnly) {
  const Package own{
      .folder = "/p", .name = "@paperclipai/plugin-e2b", .origin = PackageOrigin::registry};
  EXPECT_TRUE(worker_environment(provider("e2b"), own, "id", host).contains("E2B_API_KEY"));
  EXPECT_FALSE(worker_environment(provider("other"), own, "id", host).contains("E2B_API_KEY"));
  Package renamed = own;
  renamed.name = "plugin-e2b";
  EXPECT_FALSE(worker_environment(provider("e2b"), renamed, "id", host).contains("E2B_API_KEY"));
  Package local = own;
  local.origin = PackageOrigin::folder;
  EXPECT_FALSE(worker_environment(provider("e2b"), local, "id", host).contains("E2B_API_KEY"));
}

}  // namespace
}  // namespace berth::plugins
