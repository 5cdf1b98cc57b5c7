#include "images/image.hpp"

#include <gtest/gtest.h>

namespace berth::images {
namespace {

TEST(ImageName, ATagIsLatestUnlessItIsSaid) {
  EXPECT_EQ(parse_image_name("debian")->str(), "debian:latest");
  EXPECT_EQ(parse_image_name("team/tools-x:1.2_A")->str(), "team/tools-x:1.2_A");
}

TEST(ImageName, WhatCouldBeAPathOrAnotherNameIsRefused) {
  for (const char* text : {"", "..", "../x", "a/../b", "/a", "a/", "a//b", "A", "a:", ":b", "a:.b",
                           "a:b:c", "a b", "a+b", "-a", "a\n", "a:b/c", "a:-x"}) {
    EXPECT_FALSE(parse_image_name(text)) << text;
  }
  EXPECT_FALSE(parse_image_name(std::string(200, 'a')));
}

TEST(ImageDigest, DependsOnTheTreeAndTheConfig) {
  const std::string digest = image_digest("sha256:1", {});
  EXPECT_TRUE(is_digest(digest));
  EXPECT_NE(digest, image_digest("sha256:2", {}));
  EXPECT_NE(digest, image_digest("sha256:1", {.user = "root"}));
  EXPECT_EQ(digest, image_digest("sha256:1", {}));
}

TEST(ImageDigest, HasOneSpelling) {
  const std::string digits(64, 'a');
  EXPECT_TRUE(is_digest("sha256:" + digits));
  EXPECT_FALSE(is_digest("sha256:" + std::string(64, 'A')));
  EXPECT_FALSE(is_digest("sha256:" + digits + "a"));
  EXPECT_FALSE(is_digest("sha512:" + digits));
  EXPECT_FALSE(is_digest(digits));
}

}  // namespace
}  // namespace berth::images
