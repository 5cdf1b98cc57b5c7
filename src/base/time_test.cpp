#include "base/time.hpp"

#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace berth {
namespace {

struct Moment {
  std::int64_t ms;
  std::string_view text;
};

// Computed with another tool (date -u).
constexpr Moment moments[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {1, "1970-01-01T00:00:00.001Z"},
    {-1, "1969-12-31T23:59:59.999Z"},
    {-86'400'000, "1969-12-31T00:00:00.000Z"},
    {951'782'400'000, "2000-02-29T00:00:00.000Z"},
    {1'709'251'199'999, "2024-02-29T23:59:59.999Z"},
    {1'709'251'200'000, "2024-03-01T00:00:00.000Z"},
    {4'107'542'400'000, "2100-03-01T00:00:00.000Z"},
    {1'794'710'213'464, "2026-11-15T02:36:53.464Z"},
    {253'402'300'799'999, "9999-12-31T23:59:59.999Z"},
    {-62'167'219'200'000, "0000-01-01T00:00:00.000Z"},
};

TEST(Time, IsWrittenAndReadAsTheSameMoment) {
  for (const auto& [ms, text] : moments) {
    EXPECT_EQ(to_iso8601(Time{ms}), text);
    EXPECT_EQ(parse_iso8601(text), Time{ms}) << text;
  }
}

TEST(Time, RoundTripsOnEveryDayOfFourCenturies) {
  constexpr std::int64_t day = 86'400'000;
  for (std::int64_t i = -36'525; i < 110'000; ++i) {
    const Time at{i * day + (i * 7'919'311) % day};
    ASSERT_EQ(parse_iso8601(to_iso8601(at)), at) << at.ms;
  }
}

TEST(Time, TextOrderIsTimeOrder) {
  EXPECT_LT(to_iso8601(Time{-1}), to_iso8601(Time{0}));
  EXPECT_LT(to_iso8601(Time{999}), to_iso8601(Time{1000}));
}

TEST(Time, IsReadWithoutMilliseconds) {
  EXPECT_EQ(parse_iso8601("1970-01-01T00:00:01Z"), Time{1000});
}

TEST(Time, KnowsWhichYearsLeap) {
  EXPECT_TRUE(parse_iso8601("2024-02-29T00:00:00Z"));
  EXPECT_TRUE(parse_iso8601("2000-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_iso8601("2023-02-29T00:00:00Z"));
  EXPECT_FALSE(parse_iso8601("1900-02-29T00:00:00Z"));
}

TEST(Time, RefusesTextThatIsNoTime) {
  constexpr std::string_view wrong[] = {
      "",
      "now",
      "0",
      "2026-11-15",
      "2026-11-15T02:36:53",
      "2026-11-15T02:36:53+00:00",
      "2026-11-15t02:36:53z",
      "2026-11-15 02:36:53Z",
      " 2026-11-15T02:36:53Z",
      "2026-11-15T02:36:53Z ",
      "2026-11-15T02:36:53.Z",
      "2026-11-15T02:36:53.4Z",
      "2026-11-15T02:36:53.4644Z",
      "2026-11-15T02:36:53,464Z",
      "2026-13-15T02:36:53Z",
      "2026-00-15T02:36:53Z",
      "2026-11-31T02:36:53Z",
      "2026-11-00T02:36:53Z",
      "2026-11-15T24:00:00Z",
      "2026-11-15T02:60:53Z",
      "2026-11-15T02:36:60Z",
      "12026-11-15T02:36:53Z",
      "-026-11-15T02:36:53Z",
      "-000-11-15T02:36:53Z",
      "2026-11-15T-0:36:53Z",
      "2026-11-15T02:-0:53Z",
      "2026-11-15T02:36:-0Z",
      "2026-11-15T02:36:53.-00Z",
      "2026-11-15T+2:36:53Z",
      "2026-11-15T 2:36:53Z",
      "2026-11-15T2/:36:53Z",
      "2026-1:-15T02:36:53Z",
      "2o26-11-15T02:36:53Z",
  };
  for (const std::string_view text : wrong) {
    const Result<Time> parsed = parse_iso8601(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::validation_failed);
    EXPECT_EQ(parsed.error().message, "'" + std::string{text} + "' is not a time");
  }
}

TEST(Time, QuotesOnlyTheStartOfALongText) {
  EXPECT_LT(parse_iso8601(std::string(100'000, '2')).error().message.size(), 200U);
}

TEST(Time, IsWrittenAsTheNearestMomentThatFourDigitsCanSay) {
  EXPECT_EQ(to_iso8601(Time{253'402'300'800'000}), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(to_iso8601(Time{std::numeric_limits<std::int64_t>::max()}), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(to_iso8601(Time{std::numeric_limits<std::int64_t>::min()}), "0000-01-01T00:00:00.000Z");
}

TEST(FakeClock, StandsStillUntilItIsTold) {
  FakeClock clock{Time{1000}};
  const auto steady = clock.steady();
  EXPECT_EQ(clock.now(), Time{1000});
  clock.advance(std::chrono::seconds{2});
  EXPECT_EQ(clock.now(), Time{3000});
  EXPECT_EQ(clock.steady() - steady, std::chrono::seconds{2});
}

TEST(SystemClock, IsInThisCentury) {
  EXPECT_GT(SystemClock{}.now(), *parse_iso8601("2024-01-01T00:00:00Z"));
  EXPECT_LT(SystemClock{}.now(), *parse_iso8601("2100-01-01T00:00:00Z"));
}

}  // namespace
}  // namespace berth
