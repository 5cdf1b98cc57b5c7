#include "base/base64.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Base64, WritesTheVectorsOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, EveryByteAtEveryPlaceComesBack) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  for (std::size_t start = 0; start < 4; ++start) {
    for (std::size_t size = 0; size < 200; ++size) {
      const std::string bytes = all.substr(start * 50, size);
      EXPECT_EQ(parse_base64(base64(bytes)), bytes);
    }
  }
}

TEST(Base64, TextThatNobodyWroteIsRefused) {
  for (const char* wrong : {"Zg", "Zg=", "Z", "====", "Zg==Zg==", "=AAA", "Zm9v\n", "Zm 9", "Zm-_",
                            "Zh==", "Zm9=", "A==="}) {
    EXPECT_FALSE(parse_base64(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace berth
