#include "core/config/linux_config.hpp"

#include "core/config/environment_config.hpp"
#include "core/values_fixture.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

// The pointers of the invalid fields.
std::vector<std::string> wrong_in(std::string_view text) {
  const auto parsed = parse_linux_config(json(text));
  std::vector<std::string> out;
  if (parsed) return out;
  EXPECT_EQ(parsed.error().code, Errc::unprocessable);
  for (const Issue& issue : parsed.error().issues) out.push_back(issue.path);
  return out;
}

using List = std::vector<std::string>;

TEST(LinuxConfig, AsksForTheHostImageAndNoReuseWhenNothingIsGiven) {
  const auto config = parse_linux_config(json(R"({"provider": "linux"})"));
  ASSERT_TRUE(config);
  EXPECT_EQ(to_stored(*config),
            json(R"({"provider": "linux", "image": "host", "reuseLease": false})"));
}

TEST(LinuxConfig, StoresWhatWasGivenAndReadsItBackTheSame) {
  const bj::object given = json(R"({"provider": "linux", "image": "debian",
      "template": "with-node", "memoryMb": 512,
      "swapMb": 0, "pids": 64, "cpus": 1.5, "cpuWeight": 50, "diskMb": 100, "inodes": 5000,
      "openFiles": 256, "timeoutMs": 1000, "outputMb": 5, "network": "none", "minIsolation": "weak",
      "egress": {"allow": ["example.org"], "log": "denied"}, "reuseLease": true, "workdir": "/work",
      "user": "root", "allow": ["ptrace", "nested_user_namespaces"]})");
  const auto config = parse_linux_config(given);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(to_stored(*config), given);
  const auto again = parse_linux_config(to_stored(*config));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_stored(*again), given);
}

TEST(LinuxConfig, NamesEveryWrongFieldByItsPath) {
  EXPECT_EQ(wrong_in(R"({"memoryMB": 1})"), List{"/config/memoryMB"});
  EXPECT_EQ(wrong_in(R"({"memoryMb": "much"})"), List{"/config/memoryMb"});
  EXPECT_EQ(wrong_in(R"({"memoryMb": 1})"), List{"/config/memoryMb"});
  EXPECT_EQ(wrong_in(R"({"pids": 0, "cpus": 0})"), (List{"/config/pids", "/config/cpus"}));
  EXPECT_EQ(wrong_in(R"({"network": "bridge"})"), List{"/config/network"});
  EXPECT_EQ(wrong_in(R"({"allow": ["ptrace", "all"]})"), List{"/config/allow/1"});
  EXPECT_EQ(wrong_in(R"({"egress": {"allow": ["a", 1]}})"), List{"/config/egress/allow/1"});
  EXPECT_EQ(wrong_in(R"({"egress": {"allowed": []}})"), List{"/config/egress/allowed"});
  EXPECT_EQ(wrong_in(R"({"workdir": "work"})"), List{"/config/workdir"});
  EXPECT_EQ(wrong_in(R"({"workdir": "/work/.."})"), List{"/config/workdir"});
  EXPECT_EQ(wrong_in(R"({"image": ""})"), List{"/config/image"});
  EXPECT_EQ(wrong_in(R"({"template": ""})"), List{"/config/template"});
}

TEST(LinuxConfig, RefusesWhatContradictsItself) {
  EXPECT_EQ(wrong_in(R"({"network": "host", "egress": {}})"), List{"/config/egress"});
}

TEST(LinuxConfig, TakesLimitsBesideTheUsualOnes) {
  EXPECT_EQ(wrong_in(R"({"swapMb": 10})"), List{});
  EXPECT_EQ(wrong_in(R"({"inodes": 5000})"), List{});
}

TEST(LinuxConfig, RefusesAWorkdirInWhatIsThisMachines) {
  for (const char* path : {"/usr/src", "/bin/x", "/lib64", "/sbin"}) {
    const std::string config = R"({"workdir": ")" + std::string{path} + R"("})";
    EXPECT_EQ(wrong_in(config.c_str()), List{"/config/workdir"}) << path;
  }
  EXPECT_EQ(wrong_in(R"({"workdir": "/binary"})"), List{});
  EXPECT_EQ(wrong_in(R"({"workdir": "/bin/x", "image": "debian"})"), List{});
}

TEST(LinuxConfig, TakesNoMoreRulesThanAPolicyMayHaveWhenItIsChanged) {
  LinuxEgress egress{.allow = std::vector<std::string>(1000, "example.org"), .deny = {}, .log = {}};
  EXPECT_TRUE(check_rule_count(egress));
  egress.allow->push_back("one.more");
  const auto refused = check_rule_count(egress);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::unprocessable);
  EXPECT_NE(refused.error().remedy, "");
}

TEST(LinuxConfig, RefusesToBeStrongerThanWhatItOpensLeaves) {
  const List too_strong{"/config/minIsolation"};
  EXPECT_EQ(wrong_in(R"({"network": "host", "minIsolation": "strong"})"), too_strong);
  EXPECT_EQ(wrong_in(R"({"network": "host", "minIsolation": "standard"})"), too_strong);
  EXPECT_EQ(wrong_in(R"({"network": "host", "minIsolation": "weak"})"), List{});
  EXPECT_EQ(wrong_in(R"({"allow": ["ptrace"], "minIsolation": "strong"})"), too_strong);
  EXPECT_EQ(wrong_in(R"({"allow": ["ptrace"], "minIsolation": "standard"})"), List{});
  for (const std::string_view level : {"standard", "strong"}) {
    EXPECT_EQ(wrong_in(R"({"allow": ["ptrace", "nested_user_namespaces"], "minIsolation": ")" +
                       std::string{level} + "\"}"),
              too_strong);
  }
  EXPECT_EQ(wrong_in(R"({"minIsolation": "strong"})"), List{});
}

TEST(LinuxConfig, RefusesAWorkdirThatNoSandboxCouldHave) {
  for (const std::string path : {"/proc", "/proc/self", "/dev/shm/x", "/sys", "/usr", "/usr/src",
                                 "/work/", "/a//b", "/./a"}) {
    EXPECT_EQ(wrong_in(R"({"workdir": ")" + path + "\"}"), List{"/config/workdir"}) << path;
  }
  for (const std::string path : {"/", "/process", "/usrlocal", "/srv/dev"}) {
    EXPECT_EQ(wrong_in(R"({"workdir": ")" + path + "\"}"), List{}) << path;
  }
  EXPECT_EQ(wrong_in(R"({"image": "node", "workdir": "/usr/src/app"})"), List{});
}

TEST(LinuxConfig, IsCheckedWhenAnEnvironmentIsSaved) {
  const auto good = normalize_for_store(DriverKind::sandbox, json(R"({"provider": "linux"})"));
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->config.at("image"), bj::value("host"));
  EXPECT_FALSE(
      normalize_for_store(DriverKind::sandbox, json(R"({"provider": "linux", "memory": 1})")));
}

TEST(LinuxConfig, SaysWhatEachKeyMeans) {
  const bj::object schema = linux_config_schema();
  for (const auto& [key, property] : schema.at("properties").as_object()) {
    EXPECT_TRUE(property.as_object().contains("description")) << key;
  }
}

TEST(LinuxConfig, HasASchemaThatStandsAloneAndNamesTheSameRanges) {
  const bj::object schema = linux_config_schema();
  const bj::object& properties = schema.at("properties").as_object();
  EXPECT_EQ(properties.at("pids").as_object().at("minimum"), bj::value(8));
  EXPECT_EQ(wrong_in(R"({"pids": 7})"), List{"/config/pids"});
  EXPECT_EQ(wrong_in(R"({"pids": 8})"), List{});
  EXPECT_TRUE(properties.at("network").as_object().contains("enum"));
  EXPECT_TRUE(properties.at("egress").at("properties").as_object().contains("allow"));
  EXPECT_FALSE(schema.contains("$defs"));
  EXPECT_EQ(schema.at("additionalProperties"), bj::value(false));
  EXPECT_FALSE(schema.contains("required"));
}

}  // namespace
}  // namespace berth::core
