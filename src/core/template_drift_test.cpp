#include "core/template_drift.hpp"

#include <gmock/gmock.h>

namespace berth::core {
namespace {

using testing::ElementsAre;

Template captured(std::string provider, bj::object config) {
  config["provider"] = provider;
  return {.id = *TemplateId::parse("0197a1b2-0000-7000-8000-000000000001"),
          .company_id = *CompanyId::parse("0197a1b2-0000-7000-8000-000000000002"),
          .name = "t",
          .provider = std::move(provider),
          .binding = {.field = "startFrom", .unset_fields = {"flavour"}},
          .source_config = std::move(config)};
}

TEST(TemplateDriftTest, TheSameConfigHasNoneHoweverItIsSpelled) {
  const Template made = captured("linux", {{"image", "a"}, {"memoryMb", 64}});
  EXPECT_FALSE(drift_of(made, {{"memoryMb", 64.0}, {"provider", "linux"}, {"image", "a"}}, {}));
  EXPECT_FALSE(drift_of(
      made, {{"provider", "linux"}, {"image", "a"}, {"memoryMb", 64}, {"pids", nullptr}}, {}));
}

TEST(TemplateDriftTest, HowASandboxRunsIsAKnobAndWhatItStartsFromIsNot) {
  const Template made = captured("linux", {{"image", "a"}, {"memoryMb", 64}});
  const auto knob = drift_of(made, {{"provider", "linux"}, {"image", "a"}, {"pids", 9}}, {});
  ASSERT_TRUE(knob);
  EXPECT_EQ(knob->classification, DriftKind::knob_only);
  EXPECT_THAT(knob->drifted_paths, ElementsAre("/config/memoryMb", "/config/pids"));
  EXPECT_TRUE(still_applies(knob));
  const auto boot = drift_of(made, {{"provider", "linux"}, {"image", "b"}, {"memoryMb", 9}}, {});
  ASSERT_TRUE(boot);
  EXPECT_EQ(boot->classification, DriftKind::boot_source_drift);
  EXPECT_THAT(boot->drifted_paths, ElementsAre("/config/image", "/config/memoryMb"));
  EXPECT_FALSE(still_applies(boot));
}

TEST(TemplateDriftTest, OfAnotherProviderOnlyItsOwnWordAndOursCount) {
  const Template made = captured("boxes", {{"flavour", "a"}, {"region", "x"}, {"timeoutMs", 1}});
  const auto kind = [&](bj::object config) {
    config["provider"] = "boxes";
    return drift_of(made, config, {{"apiKey"}}).value().classification;
  };
  EXPECT_EQ(kind({{"flavour", "a"}, {"region", "x"}, {"timeoutMs", 2}}), DriftKind::knob_only);
  EXPECT_EQ(kind({{"flavour", "a"}, {"region", "y"}, {"timeoutMs", 2}}), DriftKind::unclassified);
  EXPECT_EQ(kind({{"flavour", "b"}, {"region", "y"}}), DriftKind::boot_source_drift);
  EXPECT_EQ(kind({{"flavour", "a"}, {"region", "x"}, {"startFrom", "z"}}),
            DriftKind::boot_source_drift);
}

TEST(TemplateDriftTest, AnotherSecretIsNoDriftAndAnotherProviderIs) {
  const Template made = captured("boxes", {{"apiKey", "one"}});
  EXPECT_FALSE(drift_of(made, {{"provider", "boxes"}, {"apiKey", "two"}}, {{"apiKey"}}));
  const auto moved = drift_of(made, {{"provider", "other"}, {"apiKey", "one"}}, {});
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->classification, DriftKind::boot_source_drift);
}

TEST(TemplateDriftTest, ATemplateThatDoesNotKnowItsConfigIsNotTrusted) {
  Template made = captured("linux", {});
  made.source_config.reset();
  const auto drift = drift_of(made, {{"provider", "linux"}}, {});
  ASSERT_TRUE(drift);
  EXPECT_EQ(drift->classification, DriftKind::unclassified);
  EXPECT_FALSE(still_applies(drift));
}

}  // namespace
}  // namespace berth::core
