#include "base/id.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace berth {
namespace {

struct ShipTag {
  static constexpr auto noun = "ship";
};
struct PortTag {
  static constexpr auto noun = "port";
};
using ShipId = Id<ShipTag>;
using PortId = Id<PortTag>;

static_assert(!std::is_default_constructible_v<ShipId>, "there is no empty id");
static_assert(!std::is_convertible_v<ShipId, PortId> && !std::is_constructible_v<PortId, ShipId>);
static_assert(!std::is_constructible_v<ShipId, std::string>, "an id is parsed or made");

constexpr std::string_view good = "0190b5d2-7c3e-7abc-8def-0123456789ab";

TEST(Id, KeepsTheTextItWasParsedFrom) {
  const Result<ShipId> id = ShipId::parse(good);
  ASSERT_TRUE(id);
  EXPECT_EQ(id->str(), good);
}

TEST(Id, IsParsedInEveryVersion) {
  for (const char version : std::string_view{"0123456789abcdef"}) {
    std::string text{good};
    text[14] = version;
    EXPECT_TRUE(ShipId::parse(text)) << text;
  }
}

TEST(Id, RefusesAWrongCharacterInEveryPlace) {
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'g', 'A', ' ', '\0', '/', ':', '`'}) {
      std::string text{good};
      text[at] = c;
      ASSERT_FALSE(ShipId::parse(text)) << text;
    }
    std::string swapped{good};
    swapped[at] = swapped[at] == '-' ? '0' : '-';
    ASSERT_FALSE(ShipId::parse(swapped)) << swapped;
  }
}

TEST(Id, RefusesEveryOtherLength) {
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ShipId::parse(good.substr(0, length))) << length;
  }
  EXPECT_FALSE(ShipId::parse(std::string{good} + "0"));
  EXPECT_FALSE(ShipId::parse("{" + std::string{good} + "}"));
}

TEST(Id, SaysWhatItIsNotAnIdOf) {
  const Result<PortId> id = PortId::parse("harbour");
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, Errc::validation_failed);
  EXPECT_EQ(id.error().message, "'harbour' is not a valid port id");
}

TEST(Id, QuotesForeignBytesAsText) {
  EXPECT_EQ(ShipId::parse("\xff\xc3").error().message, "'?\?' is not a valid ship id");
  EXPECT_LT(ShipId::parse(std::string(1'000'000, 'x')).error().message.size(), 200U);
}

TEST(Id, MadeOnesParseCompareAndHash) {
  SeededRandom random{1};
  const ShipId first = ShipId::make(random, Time{1});
  const ShipId second = ShipId::make(random, Time{2});
  EXPECT_EQ(ShipId::parse(first.str()), first);
  EXPECT_LT(first, second);
  const std::unordered_set<ShipId> seen{first, second, first};
  EXPECT_EQ(seen.size(), 2U);
}

}  // namespace
}  // namespace berth
