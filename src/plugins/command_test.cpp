#include "plugins/command.hpp"

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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

class ProgramFoldersTest : public testing::Test {
 protected:
  std::string make(const std::string& file, const std::string& text = "") {
    const std::string path = folder_.file(file);
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
    std::ofstream{path} << text;
    std::filesystem::permissions(path, std::filesystem::perms::all);
    return path;
  }
  std::vector<std::string> of(const std::string& program, const std::string& package,
                              const std::string& hidden = "") {
    const WorkerCommand command{.argv = {program},
                                .environment = {{"PATH", folder_.file("tools/bin")}}};
    return program_folders(command, {.folder = folder_.file(package)}, hidden);
  }
  bool has(const std::vector<std::string>& folders, const std::string& name) const {
    return std::ranges::find(folders, folder_.file(name)) != folders.end();
  }
  tests::TemporaryFolder folder_;
};

TEST_F(ProgramFoldersTest, AreThePackageAndTheModulesBesideIt) {
  const std::string worker = make("x/node_modules/@a/p/worker");
  EXPECT_EQ(of(worker, "x/node_modules/@a/p"), std::vector{folder_.file("x/node_modules")});
  make("plain/worker");
  EXPECT_EQ(of(folder_.file("plain/worker"), "plain"), std::vector{folder_.file("plain")});
}

TEST_F(ProgramFoldersTest, HoldAnInterpreterThatLiesOutsideOfUsr) {
  make("tools/bin/odd-interpreter");
  make("tools/lib/part");
  make("tools/secret/part");
  const auto folders = of(make("p/worker", "#!/usr/bin/env odd-interpreter\n"), "p");
  EXPECT_TRUE(has(folders, "p") && has(folders, "tools/bin") && has(folders, "tools/lib"));
  EXPECT_FALSE(has(folders, "tools/secret") || has(folders, "tools"));
  EXPECT_EQ(of(make("p/worker", "#!/usr/bin/env sh\n"), "p").size(), 1U) << "that of /usr is used";
}

TEST_F(ProgramFoldersTest, NeverHoldTheServersHome) {
  const std::string worker = make("p/worker");
  make("p/home/master.key");
  EXPECT_TRUE(of(worker, "p", folder_.file("p/home")).empty());
  EXPECT_TRUE(of(worker, "p", folder_.file("p")).empty());
}

}  // namespace
}  // namespace berth::plugins
