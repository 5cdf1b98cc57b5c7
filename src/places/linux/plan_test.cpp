#include "places/linux/plan.hpp"

#include "keeper/sandbox/cgroup/cgroup_settings.hpp"
#include "keeper/sandbox/isolation.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace berth::places {
namespace {

using keeper::sandbox::Plan;

Plan plan_for(std::string_view config, const RootLayers& root = {}) {
  const auto parsed = core::parse_linux_config(parse_json(config)->as_object());
  EXPECT_TRUE(parsed) << parsed.error().message;
  const Plan plan = plan_of(*parsed, root);
  const Result<> checked = check(plan);
  EXPECT_TRUE(checked) << checked.error().message;
  return plan;
}

TEST(LinuxPlan, LimitsEverythingAndWeakensNothingWhenNothingIsAsked) {
  const Plan plan = plan_for("{}");
  EXPECT_EQ(plan.base, keeper::sandbox::Base::host);
  EXPECT_EQ(plan.weakenings, 0U);
  EXPECT_EQ(plan.user, keeper::sandbox::User{});
  EXPECT_NE(plan.limits.memory_bytes, 0U);
  EXPECT_NE(plan.limits.pids, 0U);
  EXPECT_NE(plan.upper_bytes, 0U);
  EXPECT_NE(plan.tmp_bytes, 0U);
  EXPECT_EQ(plan.limits.swap_bytes, 0U);
  EXPECT_EQ(plan.directories, (std::vector<std::string>{"/home/sandbox", "/workspace"}));
  EXPECT_EQ(plan.min_level, keeper::sandbox::Level::weak);
}

TEST(LinuxPlan, CarriesEachLimitOfTheConfig) {
  const Plan plan = plan_for(R"({"memoryMb": 64, "swapMb": 8, "pids": 20, "cpus": 0.25,
      "cpuWeight": 7, "diskMb": 10, "inodes": 2000, "openFiles": 99})");
  EXPECT_EQ(plan.limits, (keeper::sandbox::Limits{.memory_bytes = 64ULL << 20,
                                                  .swap_bytes = 8ULL << 20,
                                                  .pids = 20,
                                                  .cpu_millis = 250,
                                                  .cpu_weight = 7}));
  ASSERT_EQ(plan.rlimits.size(), 1U);
  EXPECT_EQ(plan.rlimits[0].resource, RLIMIT_NOFILE);
  EXPECT_EQ(plan.rlimits[0].hard, 99U);
}

TEST(LinuxPlan, DividesWhatMayBeWrittenAmongAllThatCanBe) {
  for (const std::uint64_t mb : {1U, 10U, 300U, 100'000U}) {
    const Plan plan = plan_for(R"({"inodes": 1024, "diskMb": )" + std::to_string(mb) + "}");
    EXPECT_EQ(plan.upper_bytes + plan.tmp_bytes + plan.shm_bytes, mb << 20);
    EXPECT_EQ(plan.tmp_bytes + plan.shm_bytes, (mb << 20) / 3);
    EXPECT_EQ(plan.upper_inodes + plan.scratch_inodes, 1024U);
    EXPECT_EQ(plan.scratch_inodes, 341U);
  }
  const Plan usual = plan_for("{}");
  EXPECT_EQ(usual.upper_bytes, 2048ULL << 20);
  EXPECT_EQ(usual.tmp_bytes, 960ULL << 20);
  EXPECT_EQ(usual.shm_bytes, 64ULL << 20);
  EXPECT_EQ(usual.upper_inodes, 500'000U);
}

TEST(LinuxPlan, MayMakeAsManyFilesAsFillWhatMayBeWritten) {
  const auto inodes_with = [](const std::string& config) {
    const Plan plan = plan_for(config);
    return plan.upper_inodes + plan.scratch_inodes;
  };
  EXPECT_EQ(inodes_with("{}"), 750'000U);
  EXPECT_EQ(inodes_with(R"({"diskMb": 300})"), 76'800U);
  EXPECT_EQ(inodes_with(R"({"diskMb": 1})"), 1024U);
  EXPECT_EQ(inodes_with(R"({"diskMb": 100000})"), 750'000U);
  EXPECT_EQ(inodes_with(R"({"diskMb": 300, "inodes": 900000})"), 900'000U);
}

// What a keeper reports on a machine without control groups.
keeper::Confined without_groups(const core::LinuxConfig& config) {
  keeper::Confined confined{.level = keeper::sandbox::Level::weak};
  for (const auto& setting : keeper::sandbox::settings_of(plan_of(config, {}).limits)) {
    confined.missing.push_back(
        {.feature = setting.limit, .reason = "none is ours", .remedy = "delegate them"});
  }
  return confined;
}

TEST(LinuxPlan, TakesALimitOfTheConfigForADemandUnlessItSaysHowLittleWillDo) {
  const auto judged = [](std::string_view text) {
    const auto config = core::parse_linux_config(parse_json(text)->as_object());
    EXPECT_TRUE(config) << text;
    return expect_limits_in_force(*config, without_groups(*config));
  };
  for (const char* field : {R"("memoryMb": 256)", R"("memoryMb": 256, "swapMb": 0)",
                            R"("pids": 64)", R"("cpus": 0.5)", R"("cpuWeight": 50)"}) {
    const std::string text = std::string{"{"} + field + "}";
    const Result<> held = judged(text);
    ASSERT_FALSE(held) << text;
    EXPECT_EQ(held.error().code, Errc::isolation_too_weak);
    const std::string name = text.substr(2, text.find('"', 2) - 2);
    EXPECT_TRUE(held.error().message.starts_with(name + ": the ")) << held.error().message;
    EXPECT_TRUE(held.error().remedy.starts_with("delegate them; or ")) << held.error().remedy;
    EXPECT_TRUE(held.error().remedy.contains("minIsolation: weak"));
    EXPECT_TRUE(judged(std::string{"{"} + field + R"(, "minIsolation": "weak"})")) << field;
  }
  EXPECT_TRUE(judged("{}"));
  EXPECT_TRUE(judged(R"({"diskMb": 10, "openFiles": 99})"));
  const Result<> both = judged(R"({"memoryMb": 256, "pids": 64})");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message,
            "memoryMb: the memory limit of 268435456 bytes is not in force: none is ours; "
            "pids: the limit of 64 processes is not in force: none is ours");
}

TEST(LinuxPlan, OpensOnlyTheDoorThatIsAskedFor) {
  using namespace keeper::sandbox;
  EXPECT_EQ(plan_for(R"({"network": "none"})").weakenings, 0U);
  EXPECT_EQ(plan_for(R"({"network": "host"})").weakenings, AllowHostNetwork::bit);
  EXPECT_EQ(plan_for(R"({"allow": ["ptrace"]})").weakenings, AllowPtrace::bit);
  EXPECT_EQ(plan_for(R"({"allow": ["nested_user_namespaces"]})").weakenings,
            AllowNestedNamespaces::bit);
}

// On a machine that provides everything except what the plan itself gives up.
keeper::Confined best_of(const Plan& plan) {
  using namespace keeper::sandbox;
  Features features;
  for (unsigned i = 0; i < static_cast<unsigned>(Feature::count_); ++i) {
    const auto feature = static_cast<Feature>(i);
    const bool left_out = feature == Feature::network_namespace && plan.allows<AllowHostNetwork>();
    if (!left_out) features.add(feature);
  }
  return describe(plan, features, {});
}

// A config is rejected when it is saved for the same reasons that its sandbox would be rejected
// later.
TEST(LinuxPlan, IsAtBestAsStrongAsItsConfigSays) {
  for (const std::string network : {"none", "host"}) {
    for (const std::string allow : {"", R"("ptrace")", R"("nested_user_namespaces")",
                                    R"("ptrace", "nested_user_namespaces")"}) {
      const std::string text = R"({"network": ")" + network + R"(", "allow": [)" + allow + "]}";
      const auto config = core::parse_linux_config(parse_json(text)->as_object());
      ASSERT_TRUE(config) << text;
      EXPECT_EQ(name_of(best_of(plan_of(*config, {})).level),
                name_of(core::strongest_isolation(*config)))
          << text;
    }
  }
}

TEST(LinuxPlan, TakesLayersUserWorkdirAndTheLeastIsolation) {
  const Plan plan = plan_for(
      R"({"image": "debian", "user": "root", "workdir": "/srv/app", "minIsolation": "strong"})",
      {.layers = {"/images/a", "/images/b"}});
  EXPECT_EQ(plan.base, keeper::sandbox::Base::layers);
  EXPECT_EQ(plan.layers, (std::vector<std::string>{"/images/a", "/images/b"}));
  EXPECT_EQ(plan.user, (keeper::sandbox::User{.uid = 0, .gid = 0}));
  EXPECT_EQ(plan.directories, (std::vector<std::string>{"/root", "/srv/app"}));
  EXPECT_EQ(plan.min_level, keeper::sandbox::Level::strong);
}

TEST(LinuxPlan, IsForTheUserOfTheImageUnlessTheConfigNamesAnother) {
  const RootLayers image{
      .layers = {"/images/a"},
      .user = images::ImageUser{.uid = 33, .gid = 7, .groups = {4}, .home = "/var/www"}};
  const Plan plan = plan_for(R"({"image": "web"})", image);
  EXPECT_EQ(plan.user, (keeper::sandbox::User{.uid = 33, .gid = 7, .groups = {4}}));
  EXPECT_EQ(plan.directories.front(), "/var/www");
  const Plan usual = plan_for(R"({"image": "web", "user": "user"})", image);
  EXPECT_EQ(usual.user, keeper::sandbox::User{});
  EXPECT_EQ(usual.directories.front(), "/home/sandbox");
  const Plan root = plan_for(R"({"image": "web", "user": "root"})", image);
  EXPECT_EQ(root.user, (keeper::sandbox::User{.uid = 0, .gid = 0}));
}

TEST(LinuxPlan, GivesAHomeToAUserOfWhomTheImageKnowsNone) {
  const auto home_of = [](std::uint32_t uid) {
    return plan_for("{}", {.user = images::ImageUser{.uid = uid}}).directories.front();
  };
  EXPECT_EQ(home_of(1001), "/home/sandbox");
  EXPECT_EQ(home_of(0), "/root");
}

TEST(LinuxPlan, TellsTheIsolationWithTheFirstRemedy) {
  const bj::object told = isolation_of(
      {.level = keeper::sandbox::Level::standard,
       .features = {"pid", "net"},
       .missing = {{.feature = "a", .reason = "old"}, {.feature = "b", .remedy = "do this"}},
       .init_pid = 7});
  EXPECT_EQ(told.at("level"), bj::value("standard"));
  EXPECT_EQ(told.at("features"), bj::value({"pid", "net"}));
  EXPECT_EQ(told.at("missing").as_array().size(), 2U);
  EXPECT_EQ(told.at("remedy"), bj::value("do this"));
}

}  // namespace
}  // namespace berth::places
