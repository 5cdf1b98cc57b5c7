#include "core/fingerprint.hpp"

#include "core/values_fixture.hpp"

#include <gtest/gtest.h>

#include <set>

namespace berth::core {
namespace {

std::string canonical(std::string_view text) {
  return canonical_json(*parse_json(text));
}

ReuseKey some_key() {
  return {.company_id = id_of<CompanyId>('1'),
          .environment_id = id_of<EnvironmentId>('2'),
          .provider = "linux",
          .config = {{"image", "debian:12"}, {"cpu", 2}},
          .plugin_version = "1.2.0",
          .secret_versions = {{"33333333-0000-4000-8000-000000000000", 4}},
          .template_id = "tpl-1",
          .agent_id = id_of<AgentId>('5'),
          .execution_workspace_id = id_of<WorkspaceId>('6')};
}

TEST(CanonicalJson, SortsKeysAtEveryDepthAndKeepsTheOrderOfLists) {
  EXPECT_EQ(canonical(R"({ "b": [3, 1, {"y": null, "x": true}], "a": "\u00e9\"" })"),
            "{\"a\":\"\u00e9\\\"\",\"b\":[3,1,{\"x\":true,\"y\":null}]}");
  EXPECT_EQ(canonical("{}"), "{}");
  EXPECT_EQ(canonical(R"({"a":{},"b":[]})"), R"({"a":{},"b":[]})");
}

TEST(CanonicalJson, WritesOneNumberOneWay) {
  EXPECT_EQ(canonical("[1, 1.0, 1e0, 10e-1]"), "[1,1,1,1]");
  EXPECT_NE(canonical("1"), canonical("1.5"));
  EXPECT_NE(canonical("1"), canonical("\"1\""));
  EXPECT_EQ(canonical("-0.0"), "0");
}

TEST(Fingerprint, HasItsVersionAndItsHashInFront) {
  const std::string print = fingerprint(some_key());
  EXPECT_TRUE(print.starts_with("v1:sha256:")) << print;
  EXPECT_EQ(print.size(), std::string_view{"v1:sha256:"}.size() + 64);
}

TEST(Fingerprint, DoesNotDependOnTheOrderOfConfigKeys) {
  ReuseKey other = some_key();
  other.config = {{"cpu", 2.0}, {"image", "debian:12"}};
  EXPECT_EQ(fingerprint(other), fingerprint(some_key()));
}

TEST(Fingerprint, ChangesWithEveryPartOfTheKey) {
  std::vector<ReuseKey> keys(10, some_key());
  keys[1].company_id = id_of<CompanyId>('9');
  keys[2].environment_id = id_of<EnvironmentId>('9');
  keys[3].provider = "e2b";
  keys[4].config["cpu"] = 4;
  keys[5].plugin_version = std::nullopt;
  keys[6].secret_versions.begin()->second = 5;
  keys[7].template_id = "tpl-2";
  keys[8].agent_id = std::nullopt;
  keys[9].execution_workspace_id = id_of<WorkspaceId>('9');
  std::set<std::string> prints;
  for (const ReuseKey& key : keys) prints.insert(fingerprint(key));
  EXPECT_EQ(prints.size(), keys.size());
}

}  // namespace
}  // namespace berth::core
