#include "keeper/sandbox/plan.hpp"

#include "keeper/protocol/wire.hpp"
#include "keeper/sandbox/isolation.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace berth::keeper::sandbox {
namespace {

Plan full_plan() {
  Plan plan{.base = Base::layers,
            .layers = {"/srv/a", "/srv/b"},
            .upper_folder = "/srv/upper",
            .binds = {{.source = "/srv/w", .target = "/w", .access = Access::writable}},
            .directories = {"/work"},
            .hostname = "box-1",
            .user = {.uid = 33, .gid = 0, .groups = {4, 65535}},
            .uid_base = 65536 * 7,
            .rlimits = {{.resource = 7, .soft = 10, .hard = 20}},
            .limits = {.memory_bytes = 64 << 20, .pids = 20, .cpu_millis = 500, .cpu_weight = 50},
            .min_level = Level::standard};
  plan.allow(AllowPtrace{});
  return plan;
}

TEST(Plan, SurvivesTheWire) {
  std::string bytes;
  WireWriter{bytes}.put(full_plan());
  Plan read;
  WireReader reader{bytes};
  ASSERT_TRUE(reader.get(read));
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(read, full_plan());
}

TEST(Plan, IsNotReadFromAPartOfItsBytes) {
  std::string bytes;
  WireWriter{bytes}.put(full_plan());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Plan read;
    WireReader reader{std::string_view{bytes}.substr(0, size)};
    EXPECT_FALSE(reader.get(read)) << size;
  }
}

TEST(Plan, IsGoodAsItIsByDefault) {
  EXPECT_TRUE(check(Plan{}));
  EXPECT_TRUE(check(full_plan()));
}

TEST(Plan, AllowsOnlyWhatItWasTold) {
  const Plan plan = full_plan();
  EXPECT_TRUE(plan.allows<AllowPtrace>());
  EXPECT_FALSE(plan.allows<AllowHostNetwork>());
  EXPECT_FALSE(plan.allows<AllowNestedNamespaces>());
}

TEST(Plan, WithOneWrongPartIsRefused) {
  const std::vector<std::pair<const char*, std::function<void(Plan&)>>> spoilers{
      {"no layer", [](Plan& p) { p.layers.clear(); }},
      {"relative layer", [](Plan& p) { p.layers[0] = "srv"; }},
      {"layer with ..", [](Plan& p) { p.layers[0] = "/srv/../etc"; }},
      {"relative upper", [](Plan& p) { p.upper_folder = "u"; }},
      {"bind over the root", [](Plan& p) { p.binds[0].target = "/"; }},
      {"bind over /proc", [](Plan& p) { p.binds[0].target = "/proc/sys"; }},
      {"bind over /dev", [](Plan& p) { p.binds[0].target = "/dev"; }},
      {"bind with NUL", [](Plan& p) { p.binds[0].source = std::string{"/a\0b", 4}; }},
      {"bind with //", [](Plan& p) { p.binds[0].target = "/a//b"; }},
      {"bind with a last slash", [](Plan& p) { p.binds[0].target = "/a/"; }},
      {"directory with .", [](Plan& p) { p.directories[0] = "/a/./b"; }},
      {"too many binds", [](Plan& p) { p.binds.resize(65, p.binds[0]); }},
      {"tiny shm", [](Plan& p) { p.shm_bytes = 1; }},
      {"no room for files", [](Plan& p) { p.scratch_inodes = 0; }},
      {"tiny memory", [](Plan& p) { p.limits.memory_bytes = 1; }},
      {"swap without memory", [](Plan& p) { p.limits = {.swap_bytes = 1}; }},
      {"too few processes", [](Plan& p) { p.limits.pids = 1; }},
      {"too much weight", [](Plan& p) { p.limits.cpu_weight = 10'001; }},
      {"rlimit that is none", [](Plan& p) { p.rlimits[0].resource = 16; }},
      {"rlimit upside down", [](Plan& p) { p.rlimits[0].soft = 21; }},
      {"empty host name", [](Plan& p) { p.hostname = ""; }},
      {"host name with a slash", [](Plan& p) { p.hostname = "a/b"; }},
      {"ids of no range", [](Plan& p) { p.uid_base = 1000; }},
      {"ids past the end", [](Plan& p) { p.uid_base = 0xffff0000U; }},
      {"user that is none", [](Plan& p) { p.user.uid = 65536; }},
      {"group that is none", [](Plan& p) { p.user.gid = UINT32_MAX; }},
      {"other group that is none", [](Plan& p) { p.user.groups[1] = 65536; }},
      {"too many groups", [](Plan& p) { p.user.groups.resize(65, 4); }},
      {"unknown weakening", [](Plan& p) { p.weakenings = 1U << 31; }},
  };
  for (const auto& [name, spoil] : spoilers) {
    Plan plan = full_plan();
    spoil(plan);
    const Result<> checked = check(plan);
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().code, Errc::validation_failed) << name;
  }
}

TEST(User, HasTheCapabilitiesOfRootOnlyWhenItIsRoot) {
  EXPECT_EQ(User{}.identity(), Identity::user);
  EXPECT_EQ((User{.uid = 1000, .gid = 0}).identity(), Identity::user);
  EXPECT_EQ((User{.uid = 0, .gid = 1000}).identity(), Identity::root);
}

TEST(Level, ComparesByStrength) {
  EXPECT_LT(Level::weak, Level::standard);
  EXPECT_LT(Level::standard, Level::strong);
  EXPECT_EQ(name_of(Level::strong), "strong");
}

TEST(Level, WhatMendsSeveralThingsIsToldOnce) {
  const Plan plan{.min_level = Level::strong};
  const auto remedy_for = [&](const std::vector<Missing>& missing) {
    const Result<> refused = demand(plan, {.level = Level::weak, .missing = missing});
    EXPECT_FALSE(refused);
    return refused ? "" : refused.error().remedy;
  };
  const Missing limits{.feature = "memory", .reason = "not ours", .remedy = "ask root"};
  const Missing other{.feature = "landlock", .reason = "not there", .remedy = "a new kernel"};
  const Missing longer{.feature = "pids", .reason = "not ours", .remedy = "ask root; or be root"};
  const Missing none{.feature = "cpu", .reason = "not ours", .remedy = ""};
  EXPECT_EQ(remedy_for({limits, other, limits}), "ask root; a new kernel");
  EXPECT_EQ(remedy_for({limits, other, longer}), "a new kernel; ask root; or be root");
  EXPECT_EQ(remedy_for({longer, none, limits}), "ask root; or be root");
}

}  // namespace
}  // namespace berth::keeper::sandbox
