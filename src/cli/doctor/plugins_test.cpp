#include "cli/doctor/check.hpp"

#include <boost/json/parse.hpp>

#include <gtest/gtest.h>

namespace berth::cli::doctor {
namespace {

TEST(DoctorPluginsTest, NamesThoseThatAreLessApartThanTheyCouldBe) {
  const std::vector<Finding> found = judge_plugins(bj::parse(R"([
    {"pluginKey": "old", "isolation": "strong", "egress": {"allow": [], "keptPrivate": true}},
    {"pluginKey": "new", "isolation": "strong", "egress": null},
    {"pluginKey": "set", "isolation": "weak", "egress": {"allow": [], "keptPrivate": false}}])"));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].check, "plugin old");
  EXPECT_TRUE(found[0].says.contains("kept from before the upgrade"));
  EXPECT_EQ(found[1].check, "plugin set");
  EXPECT_TRUE(found[1].says.contains("weak"));
  EXPECT_TRUE(judge_plugins(bj::parse("{}")).empty());
}

}  // namespace
}  // namespace berth::cli::doctor
