#include "base/text.hpp"

#include <gtest/gtest.h>

namespace berth {
namespace {

TEST(Clipped, KeepsTextThatFits) {
  EXPECT_EQ(clipped("", 0), "");
  EXPECT_EQ(clipped("abc", 3), "abc");
}

TEST(Clipped, NeverEndsInsideACharacter) {
  // One, two, three and four bytes: 1 + 2 + 3 + 4 = 10.
  const std::string text = "a\u00e4\u20ac\U0001f600";
  const std::size_t lengths[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (std::size_t max = 0; max <= text.size(); ++max) {
    EXPECT_EQ(clipped(text, max).size(), lengths[max]) << "at most " << max;
  }
}

TEST(Clipped, IsNearItsLimitAlsoForBytesThatAreNoText) {
  EXPECT_GE(clipped(std::string(100, '\x80'), 64).size(), 61U);
}

TEST(AsUtf8, KeepsEveryCharacter) {
  const std::string text = "a\n\u00e4\u07ff\u0800\u20ac\ud7ff\ue000\uffff\U00010000\U0010ffff";
  EXPECT_EQ(as_utf8(text), text);
}

TEST(AsUtf8, WritesAQuestionMarkForEachByteThatIsNoText) {
  struct Case {
    std::string_view what, in, out;
  };
  const Case cases[] = {
      {"lone continuation", "a\x80z", "a?z"},
      {"lone start", "a\xc3z", "a?z"},
      {"cut off at the end", "a\xe2\x82", "a??"},
      {"overlong slash", "\xc0\xaf", "??"},
      {"overlong of three", "\xe0\x80\xaf", "???"},
      {"overlong of four", "\xf0\x80\x80\xaf", "????"},
      {"surrogate", "\xed\xa0\x80", "???"},
      {"past the last character", "\xf4\x90\x80\x80", "????"},
      {"no first byte", "\xff\xfe", "??"},
  };
  for (const Case& c : cases) EXPECT_EQ(as_utf8(c.in), c.out) << c.what;
}

TEST(IsUtf8, IsWhatAsUtf8LeavesAsItIs) {
  EXPECT_TRUE(is_utf8(""));
  for (std::size_t at = 0; at < 20; ++at) {
    std::string text(20, 'x');
    EXPECT_TRUE(is_utf8(text));
    text[at] = '\xff';
    EXPECT_FALSE(is_utf8(text)) << "a wrong byte at " << at;
    text.replace(at, 1, "\u20ac");
    EXPECT_TRUE(is_utf8(text)) << "a character at " << at;
    text.erase(at + 2, 1);
    EXPECT_FALSE(is_utf8(text)) << "a character that is cut at " << at;
  }
}

TEST(IsUnseen, KnowsWhatMakesOneNameLookLikeAnother) {
  const std::string_view hidden[] = {"\u00ad", "\u061c",     "\u200b",    "\u200f",
                                     "\u2028", "\u202e",     "\u2060",    "\u2069",
                                     "\ufeff", "\U000e0000", "\U000e007f"};
  for (const std::string_view one : hidden) EXPECT_TRUE(is_unseen(code_point(one))) << one;
  const std::string_view seen[] = {"a", "\u00e4", "\u200a", "\u2010", "\u20ac", "\U0001f600"};
  for (const std::string_view one : seen) EXPECT_FALSE(is_unseen(code_point(one))) << one;
}

TEST(InQuotes, IsShortAndClean) {
  EXPECT_EQ(in_quotes("staging"), "'staging'");
  EXPECT_EQ(in_quotes("\xff"), "'?'");
  EXPECT_EQ(in_quotes(std::string(1000, 'x')), "'" + std::string(128, 'x') + "'");
}

TEST(InQuotes, ShowsADigestWhole) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  EXPECT_EQ(in_quotes(digest), "'" + digest + "'");
}

TEST(Text, KnowsACharacterThatIsCutFromOneThatIsWrong) {
  const std::string_view euro = "\xe2\x82\xac";
  EXPECT_EQ(cut_character_length(euro), 0U);
  EXPECT_EQ(cut_character_length(euro.substr(0, 2)), 2U);
  EXPECT_EQ(cut_character_length("a\xe2"), 1U);
  EXPECT_EQ(cut_character_length("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(cut_character_length("\xe0\x80"), 0U) << "overlong: no rest helps";
  EXPECT_EQ(cut_character_length("\xed\xa0"), 0U) << "a surrogate";
  EXPECT_EQ(cut_character_length("\xf4\x90"), 0U) << "past U+10FFFF";
  EXPECT_EQ(cut_character_length("\xff"), 0U);
  EXPECT_EQ(cut_character_length("\x82\xac"), 0U);
  EXPECT_EQ(cut_character_length(""), 0U);
  EXPECT_EQ(character_length(euro), 3U);
  EXPECT_EQ(character_length(""), 0U);
}

}  // namespace
}  // namespace berth
