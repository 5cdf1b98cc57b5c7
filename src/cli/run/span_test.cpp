#include "cli/run/span.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

TEST(ParseSpan, AddsUpItsUnits) {
  EXPECT_EQ(parse_span_ms("30s", "--timeout").value(), 30'000);
  EXPECT_EQ(parse_span_ms("500ms", "--timeout").value(), 500);
  EXPECT_EQ(parse_span_ms("1h30m", "--timeout").value(), 5'400'000);
  EXPECT_EQ(parse_span_ms("2d", "--timeout").value(), 172'800'000);
  EXPECT_EQ(parse_span_ms("366d", "--timeout").value(), 366LL * 86'400'000);
}

TEST(ParseSpan, WhatIsNoSpanIsRefusedWithTheFlagsName) {
  for (const char* wrong : {"", "30", "s", "0s", "-5s", "1.5h", "5 s", "3weeks", "367d", "1h-5m",
                            "99999999999999999999s", "9223372036854775807d", "365d365d"}) {
    const auto parsed = parse_span_ms(wrong, "--timeout");
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Errc::bad_request);
    EXPECT_TRUE(parsed.error().message.starts_with("--timeout '")) << parsed.error().message;
  }
}

TEST(SpanText, HasTheUnitThatAPersonWouldTake) {
  EXPECT_EQ(span_text(0), "0 ms");
  EXPECT_EQ(span_text(999), "999 ms");
  EXPECT_EQ(span_text(3'499), "3.4 s");
  EXPECT_EQ(span_text(125'000), "2 min 5 s");
  EXPECT_EQ(span_text(4'320'000), "1 h 12 min");
}

}  // namespace
}  // namespace berth::cli
