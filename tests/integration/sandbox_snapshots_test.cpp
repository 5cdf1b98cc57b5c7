#include "integration/sandbox_fixture.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"
#include "places/linux/snapshots.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

// What a real sandbox has written, compared and captured while it lives.
namespace berth::keeper_test {
namespace {

namespace fs = std::filesystem;
using places::ChangeKind;
using places::HeldImages;
using places::LiveSandbox;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const core::TemplateId first_key = *core::TemplateId::parse("0197a1b2-0000-7000-8000-000000000001");
const core::TemplateId second_key =
    *core::TemplateId::parse("0197a1b2-0000-7000-8000-000000000002");

class SandboxSnapshots : public SandboxTest {
 protected:
  HeldImages images() const { return {root() + "/images", root() + "/templates"}; }
  std::string upper_of(const core::TemplateId& id) const {
    return root() + "/templates/by-id/" + id.str() + "/upper";
  }
  LiveSandbox live() const { return {"the sandbox", folder(), config_}; }

  static core::LinuxConfig from_template(core::LinuxUser user) {
    core::LinuxConfig config;
    config.template_ = first_key.str();
    config.user = user;
    return config;
  }
  // Creates one like the provider.
  void open(core::LinuxConfig config) {
    config_ = std::move(config);
    const auto layers = images().layers_for(config_);
    ASSERT_TRUE(layers) << layers.error().message;
    confine(places::plan_of(config_, *layers));
  }
  // A template on this machine's programs whose layer is this folder.
  void shelve(const core::TemplateId& id, const std::string& upper) {
    const Fd folder{::open(upper.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    const Result<> made = images().with_stores(
        [&](const auto& /*store*/, const images::TemplateStore& templates) -> Result<> {
          BERTH_DO(templates.capture(folder.get(),
                                     {.id = id.str(), .name = "shelf", .base_image = "host"}));
          return {};
        });
    ASSERT_TRUE(made) << made.error().message;
  }
  Result<places::CapturedTemplate> capture(const core::TemplateId& id) const {
    return capture_sandbox(live(), images(), {.key = id});
  }
  std::vector<std::pair<ChangeKind, std::string>> changes() const {
    const auto found = changes_of(live(), images());
    EXPECT_TRUE(found) << found.error().message;
    std::vector<std::pair<ChangeKind, std::string>> out;
    for (const places::Change& one : found.value_or(places::Changes{}).changes) {
      out.emplace_back(one.change, one.path);
    }
    return out;
  }

 private:
  core::LinuxConfig config_;
};
INSTANTIATE_TEST_SUITE_P(By, SandboxSnapshots, testing::Values(Maker::root),
                         [](const auto&) { return "Root"; });

#define OPEN(...)    \
  open(__VA_ARGS__); \
  if (IsSkipped() || HasFatalFailure()) return

TEST_P(SandboxSnapshots, NothingDiffersInAFreshOneNorForWhatItsSetupMakes) {
  OPEN({});
  EXPECT_THAT(changes(), IsEmpty());
  said("echo x > /workspace/made; touch /tmp/not-of-the-root");
  EXPECT_THAT(changes(), UnorderedElementsAre(std::pair{ChangeKind::added, "/workspace/made"}));
}

TEST_P(SandboxSnapshots, NothingDiffersInAFreshOneWithTheNetworkOfTheHost) {
  core::LinuxConfig config;
  config.network = core::LinuxNetwork::host;
  OPEN(config);
  EXPECT_THAT(changes(), IsEmpty());
}

TEST_P(SandboxSnapshots, WhatDiffersIsToldAgainstTheTemplateThatItStartedFrom) {
  const std::string upper = root() + "/shelf";
  fs::create_directories(upper + "/srv");
  for (const char* name : {"/srv/kept", "/srv/altered", "/srv/dropped"}) {
    std::ofstream{upper + name} << "old";
  }
  shelve(first_key, upper);
  OPEN(from_template(core::LinuxUser::root));
  EXPECT_EQ(said("cat /srv/kept"), "old");
  EXPECT_THAT(changes(), IsEmpty());
  said("echo new > /srv/altered; rm /srv/dropped; echo new > /srv/more");
  EXPECT_THAT(changes(), UnorderedElementsAre(std::pair{ChangeKind::changed, "/srv/altered"},
                                              std::pair{ChangeKind::removed, "/srv/dropped"},
                                              std::pair{ChangeKind::added, "/srv/more"}));
}

TEST_P(SandboxSnapshots, ACaptureHasTheFilesWithTheIdsThatTheSandboxKnowsAndItGoesOn) {
  OPEN({});
  said("echo text > /workspace/file");
  const auto made = capture(first_key);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->ref, first_key.str());
  EXPECT_EQ(made->binding.field, "template");
  struct stat file{};
  ASSERT_EQ(::stat((upper_of(first_key) + "/workspace/file").c_str(), &file), 0);
  EXPECT_EQ(file.st_size, 5);
  EXPECT_EQ(file.st_uid, keeper::sandbox::User{}.uid);
  EXPECT_EQ(said("cat /workspace/file"), "text\n");
}

TEST_P(SandboxSnapshots, ACaptureThatIsRepeatedFindsTheFirst) {
  OPEN({});
  said("echo before > /workspace/file");
  ASSERT_TRUE(capture(first_key));
  said("echo after > /workspace/file");
  const auto again = capture(first_key);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->ref, first_key.str());
  std::string text;
  std::ifstream{upper_of(first_key) + "/workspace/file"} >> text;
  EXPECT_EQ(text, "before");
}

TEST_P(SandboxSnapshots, ACaptureOnATemplateStandsOnItUntilItIsDeleted) {
  const std::string upper = root() + "/shelf";
  fs::create_directories(upper + "/srv");
  shelve(first_key, upper);
  OPEN(from_template(core::LinuxUser::user));
  const auto made = capture(second_key);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->metadata.at("depth").to_number<int>(), 2);
  const auto refused = delete_captured(images(), {.key = first_key});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::image_in_use) << refused.error().message;
  EXPECT_EQ(delete_captured(images(), {.key = second_key}), true);
  EXPECT_EQ(delete_captured(images(), {.key = first_key}), true);
  EXPECT_EQ(delete_captured(images(), {.key = first_key}), false);
}

TEST_P(SandboxSnapshots, OneThatIsToStayFrozenDoesNothingUntilItIsThawed) {
  const keeper::sandbox::CgroupLayout groups = keeper::sandbox::detect_layout();
  if (!groups.has(keeper::sandbox::Controller::freezer) && groups.unified.empty()) {
    GTEST_SKIP() << "no control group can be frozen here: " << groups.remedy;
  }
  OPEN({});
  const keeper::Exec beats = inside("while :; do echo beat; sleep 0.05; done");
  ASSERT_TRUE(client().exec(beats));
  wait_for_output(beats.exec_id, "beat\n");
  const auto made = capture_sandbox(
      live(), images(), {.key = first_key, .afterwards = places::Afterwards::stays_frozen});
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->metadata.at("frozenWhileCopied"), true);
  const auto refused = client().listener(8087);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict) << refused.error().message;
  ASSERT_TRUE(client().thaw());
  EXPECT_EQ(said("echo on"), "on\n");
}

TEST_P(SandboxSnapshots, OneWhoseKeeperIsGoneIsNeitherComparedNorCaptured) {
  const LiveSandbox gone{"the sandbox", root() + "/nowhere", {}};
  EXPECT_FALSE(changes_of(gone, images()));
  EXPECT_FALSE(capture_sandbox(gone, images(), {.key = first_key}));
  EXPECT_FALSE(fs::exists(upper_of(first_key)));
}

}  // namespace
}  // namespace berth::keeper_test
