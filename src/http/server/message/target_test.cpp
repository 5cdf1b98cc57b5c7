#include "http/server/message/target.hpp"

#include <gtest/gtest.h>

namespace berth::http {
namespace {

TEST(Target, IsTakenApartAndDecoded) {
  const auto target = parse_target("/a/b%20c?x=1&name=a+b%26c&flag", "localhost");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a/b%20c");
  EXPECT_EQ(target->segments, (std::vector<std::string>{"a", "b c"}));
  EXPECT_EQ(target->query,
            (std::map<std::string, std::string>{{"x", "1"}, {"name", "a b&c"}, {"flag", ""}}));
}

TEST(Target, AnEscapedSlashStaysInsideItsSegment) {
  const auto target = parse_target("/a%2Fb", "localhost");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->segments, (std::vector<std::string>{"a/b"}));
}

TEST(Target, TheAbsoluteFormMustNameTheHostOfTheHeader) {
  const auto same = parse_target("http://Berth.example:80/x?y=1", "berth.example:80");
  ASSERT_TRUE(same);
  EXPECT_EQ(same->path, "/x");
  EXPECT_FALSE(parse_target("http://evil.example/x", "berth.example"));
}

TEST(Target, WhatCouldBeReadInTwoWaysIsRefused) {
  for (const char* text : {"/%", "/%4", "/%zz", "/a%00b", "/a/../b", "/a/%2e%2E/b", "/./a", "a",
                           "*", "", "/a#b", "http://h", "/?a=%", "/?a=1&a=2", "/?%61=1&a=2"}) {
    const auto target = parse_target(text, "h");
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(name_of(target.error().code),
              std::string_view{text}.contains("&a=2") ? "validation_failed" : "bad_request")
        << text;
  }
}

TEST(Target, EncodingIsTheInverseOfDecoding) {
  std::string every;
  for (int c = 1; c < 256; ++c) every += static_cast<char>(c);
  EXPECT_EQ(percent_decoded(percent_encoded(every)), every);
}

}  // namespace
}  // namespace berth::http
