#include "base/random.hpp"

#include "base/id.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace berth {
namespace {

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

TEST(Base64Url, WritesTheVectorsOfRfc4648WithoutPadding) {
  constexpr std::pair<std::string_view, std::string_view> vectors[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"},
  };
  for (const auto& [in, out] : vectors) EXPECT_EQ(base64url(bytes_of(in)), out) << in;
}

TEST(Base64Url, UsesTheTwoDigitsThatAreSafeInUrls) {
  EXPECT_EQ(base64url(bytes_of("\xfb\xff\xfe")), "-__-");
}

TEST(Hex, WritesTwoLowerCaseDigitsPerByte) {
  using namespace std::string_view_literals;
  EXPECT_EQ(hex(bytes_of("\x00\x0f\xa5\xff"sv)), "000fa5ff");
}

TEST(RandomBase64Url, HasTheLengthOfItsBytes) {
  SeededRandom random{1};
  EXPECT_EQ(random_base64url(random, 32).size(), 43U);
  EXPECT_EQ(random_base64url(random, 0), "");
}

TEST(SeededRandom, GivesTheSameBytesForTheSameSeedOnly) {
  const auto draw = [](std::uint64_t seed) {
    SeededRandom random{seed};
    std::vector<unsigned char> out(64);
    random.fill(out);
    return out;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

TEST(SystemRandom, FillsEveryByte) {
  SystemRandom random;
  std::array<unsigned char, 33> seen{};
  // A byte that is never written remains 0; the chance that a written byte is 0 all 64 times is
  // 2^-512.
  for (int i = 0; i < 64; ++i) {
    std::array<unsigned char, 33> drawn{};
    random.fill(drawn);
    for (std::size_t at = 0; at < seen.size(); ++at) seen[at] |= drawn[at];
  }
  EXPECT_TRUE(std::ranges::none_of(seen, [](unsigned char byte) { return byte == 0; }));
}

TEST(Base64Url, EveryTextIsReadBack) {
  SeededRandom random{7};
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<unsigned char> bytes(length);
    random.fill(bytes);
    EXPECT_EQ(from_base64url(base64url(bytes)), std::string(bytes.begin(), bytes.end())) << length;
  }
}

TEST(Base64Url, WhatItWouldNotWriteIsRefused) {
  EXPECT_EQ(from_base64url("Zg"), "f");
  for (const char* text : {"Z", "Zh", "Zm9", "Zg==", "Z+8A", "Zm9v\n", "Zm 9v"}) {
    EXPECT_FALSE(from_base64url(text)) << text;
  }
}

TEST(Uuid, HasVersionSevenAndTheVariantOfTheRfc) {
  SystemRandom random;
  for (int i = 0; i < 1000; ++i) {
    const std::string uuid = make_uuid(random, Time{1'700'000'000'000 + i});
    ASSERT_TRUE(is_uuid(uuid)) << uuid;
    ASSERT_EQ(uuid[14], '7') << uuid;
    ASSERT_TRUE(std::string_view{"89ab"}.contains(uuid[19])) << uuid;
  }
}

TEST(Uuid, StartsWithItsTime) {
  SeededRandom random{1};
  // The example of RFC 9562: 2022-02-22T19:22:22Z.
  EXPECT_TRUE(make_uuid(random, Time{0x017F22E279B0}).starts_with("017f22e2-79b0-7"));
}

TEST(Uuid, LaterOnesSortAfterEarlierOnes) {
  SystemRandom random;
  std::string last;
  for (const std::int64_t ms : {0LL, 1LL, 255LL, 256LL, 65'535LL, 65'536LL, 1'700'000'000'000LL,
                                1'700'000'000'001LL, 253'402'300'799'999LL}) {
    const std::string uuid = make_uuid(random, Time{ms});
    EXPECT_LT(last, uuid) << ms;
    last = uuid;
  }
}

TEST(Uuid, DiffersWithinOneMillisecond) {
  SystemRandom random;
  std::set<std::string> seen;
  for (int i = 0; i < 10'000; ++i) seen.insert(make_uuid(random, Time{5}));
  EXPECT_EQ(seen.size(), 10'000U);
}

TEST(Uuid, IsTheSameForTheSameSeedAndTime) {
  SeededRandom one{3};
  SeededRandom two{3};
  EXPECT_EQ(make_uuid(one, Time{9}), make_uuid(two, Time{9}));
}

}  // namespace
}  // namespace berth
