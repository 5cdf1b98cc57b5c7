#include "core/output/redaction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace berth::core {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<Secret> secrets_of(const std::vector<std::string>& values) {
  std::vector<Secret> out;
  for (const std::string& value : values) out.emplace_back(value);
  return out;
}

std::string redacted(const RedactionSet& set, const std::vector<std::string_view>& chunks) {
  Redactor redactor{set};
  std::string out;
  for (const std::string_view chunk : chunks) out += redactor.push(chunk);
  return out + redactor.flush();
}

std::string redacted(const std::vector<std::string>& values, std::string_view text) {
  return redacted(RedactionSet{secrets_of(values)}, {text});
}

// A slow implementation of the definition: marks every byte of every occurrence, and writes one
// mark for each run of overlapping occurrences.
std::string redacted_slowly(const std::vector<std::string>& values, std::string_view text) {
  struct Span {
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Span> found;
  for (const std::string& value : values) {
    for (std::size_t at = text.find(value); at != text.npos; at = text.find(value, at + 1)) {
      found.push_back({at, at + value.size()});
    }
  }
  std::ranges::sort(found, {}, &Span::begin);
  std::vector<Span> merged;
  for (const Span span : found) {
    if (!merged.empty() && span.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  std::string out;
  std::size_t at = 0;
  for (const Span span : merged) {
    out += std::string{text.substr(at, span.begin - at)} + std::string{redaction_mark};
    at = span.end;
  }
  return out + std::string{text.substr(at)};
}

TEST(Redaction, HidesEveryOccurrenceAndNothingElse) {
  EXPECT_EQ(redacted({"hunter2"}, "pass=hunter2, again hunter2; hunter3"),
            "pass=***REDACTED***, again ***REDACTED***; hunter3");
  EXPECT_EQ(redacted({"hunter2"}, "hunter2"), "***REDACTED***");
  EXPECT_EQ(redacted({"hunter2"}, ""), "");
  EXPECT_EQ(redacted({}, "anything"), "anything");
}

TEST(Redaction, HidesTheLongerOfTwoValuesThatBeginAlike) {
  EXPECT_EQ(redacted({"abcd", "abcdefgh"}, "abcdefgh abcdx"), "***REDACTED*** ***REDACTED***x");
}

TEST(Redaction, LeavesNoPartOfValuesThatOverlap) {
  EXPECT_EQ(redacted({"abcd", "cdef"}, "xabcdefx"), "x***REDACTED***x");
  EXPECT_EQ(redacted({"aaaa"}, "baaaaaaaab"), "b***REDACTED***b");
}

TEST(Redaction, MarksValuesThatTouchOneByOne) {
  EXPECT_EQ(redacted({"abcd"}, "abcdabcd"), "***REDACTED******REDACTED***");
}

TEST(Redaction, LeavesValuesThatAreTooShortToHide) {
  EXPECT_EQ(redacted({"abc", ""}, "abcabc"), "abcabc");
  EXPECT_TRUE(RedactionSet{secrets_of({"abc\n"})}.empty());
}

TEST(Redaction, HidesBytesThatAreNoText) {
  const std::string value{"\0\xff\xfe\x01", 4};
  EXPECT_EQ(redacted({value}, "a" + value + "b"), "a***REDACTED***b");
}

TEST(Redaction, FindsTheSameForEveryCutIntoThreeChunks) {
  const std::vector<std::string> values{"secret", "cretin", "ssss", "abcdefghij", "defg"};
  const std::string_view text = "sssssecretin abcdefghij abcdefgh sssss secre secret abcdefghi";
  const RedactionSet set{secrets_of(values)};
  const std::string whole = redacted(set, {text});
  EXPECT_EQ(whole, redacted_slowly(values, text));
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      ASSERT_EQ(redacted(set, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), whole)
          << i << " " << j;
    }
  }
}

TEST(Redaction, FindsTheSameForEveryPossibleCutOfAShortText) {
  const std::vector<std::string> values{"abab", "babba", "aabb"};
  const std::string_view text = "aababbabaabbab";
  const RedactionSet set{secrets_of(values)};
  const std::string whole = redacted_slowly(values, text);
  for (std::uint32_t cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
    std::vector<std::string_view> chunks;
    std::size_t begin = 0;
    for (std::size_t i = 1; i <= text.size(); ++i) {
      if (i < text.size() && (cuts >> (i - 1) & 1U) == 0) continue;
      chunks.push_back(text.substr(begin, i - begin));
      begin = i;
    }
    ASSERT_EQ(redacted(set, chunks), whole) << cuts;
  }
}

// A small alphabet makes values that overlap, contain and continue each other in every way.
TEST(Redaction, AgreesWithItsDefinitionOnRandomTextsAndCuts) {
  std::mt19937 random{7};
  const auto below = [&](std::size_t limit) { return random() % limit; };
  for (int round = 0; round < 3000; ++round) {
    const std::size_t letters = 2 + below(3);
    const auto word = [&](std::size_t size) {
      std::string out(size, 'a');
      for (char& c : out) c = static_cast<char>('a' + below(letters));
      return out;
    };
    std::vector<std::string> values;
    // Values below eight bytes have no encoded spellings, which keeps the definition simple.
    for (std::size_t i = 0; i <= below(4); ++i) values.push_back(word(4 + below(4)));
    const std::string text = word(below(200));
    const RedactionSet set{secrets_of(values)};
    std::vector<std::string_view> chunks;
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t size = std::min(rest.size(), below(9));
      chunks.push_back(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(redacted(set, chunks), redacted_slowly(values, text)) << "round " << round;
  }
}

TEST(Redaction, WithholdsOnlyWhatMayStillBecomeAValue) {
  const RedactionSet set{secrets_of({"hunter2"})};
  Redactor redactor{set};
  EXPECT_EQ(redactor.push("name: "), "name: ");
  EXPECT_EQ(redactor.push("hunt"), "");
  EXPECT_EQ(redactor.push("ing"), "hunting");
  EXPECT_EQ(redactor.push("hunter2"), "***REDACTED***");
  EXPECT_EQ(redactor.push("hu"), "");
  EXPECT_EQ(redactor.flush(), "hu");
  EXPECT_EQ(redactor.push("nter2"), "nter2") << "a flush ends the text before it";
}

TEST(Redaction, WithholdsAtMostTheLongestValueButOneByte) {
  const std::string value = "abcabcabcabcabcabcabd";
  const RedactionSet set{secrets_of({value, "caba"})};
  EXPECT_GE(set.held_bytes_max(), value.size() - 1);
  Redactor redactor{set};
  std::size_t in = 0;
  std::size_t out = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string_view piece = "abcab";
    in += piece.size();
    out += redactor.push(piece).size();
    ASSERT_LE(in, out + set.held_bytes_max());
  }
}

TEST(Redaction, HoldsNoMoreForARunOfValuesThatNeverEnds) {
  const RedactionSet set{secrets_of({"aaaa"})};
  Redactor redactor{set};
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(redactor.push("aaaaaaaa"), "");
  EXPECT_EQ(redactor.push("b"), "***REDACTED***b");
}

TEST(Redaction, HidesTheSpellingsInWhichToolsPrintAValue) {
  const std::string value = "p/s+s w\"rd\\99";
  for (const std::string_view text : {
           R"({"password":"p/s+s w\"rd\\99"})",         // JSON
           "https://x/?p=p%2Fs%2Bs%20w%22rd%5C99&q=1",  // URL
       }) {
    const std::string out = redacted({value}, text);
    EXPECT_THAT(out, HasSubstr(redaction_mark)) << text;
    EXPECT_THAT(out, Not(HasSubstr("99"))) << text;
  }
}

TEST(Redaction, HidesEachWayToEscapeAValue) {
  const std::string value = "p@ss/w\"rd \xc3\xa9 \xf0\x9f\x94\x91 1234";
  for (const std::string_view text : {
           "p@ss/w\\\"rd \\u00e9 \\ud83d\\udd11 1234",    // Python json.dumps
           "p@ss/w\\\"rd \\u00E9 \\uD83D\\uDD11 1234",    // Jackson
           "p@ss\\/w\\\"rd \\u00e9 \\ud83d\\udd11 1234",  // PHP
           "p@ss\\/w\\\"rd \xc3\xa9 \xf0\x9f\x94\x91 1234",
           "p%40ss%2Fw%22rd%20%C3%A9%20%F0%9F%94%91%201234",
           "p%40ss%2fw%22rd%20%c3%a9%20%f0%9f%94%91%201234",
           "p%40ss/w%22rd%20%C3%A9%20%F0%9F%94%91%201234",  // Python quote
           "p%40ss%2Fw%22rd+%C3%A9+%F0%9F%94%91+1234",      // HTML form
           "p%40ss%2fw%22rd+%c3%a9+%f0%9f%94%91+1234",
       }) {
    EXPECT_EQ(redacted({value}, text), redaction_mark) << text;
  }
}

TEST(Redaction, HidesAValueInJsonInsideOfJson) {
  const std::string value = "p/ss\"w\\rd\nnext \xc3\xa9 1234";
  for (const std::string_view text : {
           R"(p/ss\\\"w\\\\rd\\nnext \\u00e9 1234)",          // json.dumps twice
           "p/ss\\\\\\\"w\\\\\\\\rd\\\\nnext \xc3\xa9 1234",  // JSON.stringify twice
           R"(p/ss\\\"w\\\\rd\\nnext \u00e9 1234)",           // JSON.stringify inside json.dumps
           R"(p\\\/ss\\\"w\\\\rd\\nnext \\u00e9 1234)",       // PHP json_encode twice
           R"(p\\/ss\\\"w\\\\rd\\nnext \\u00e9 1234)",        // json_encode inside json.dumps
       }) {
    EXPECT_EQ(redacted({value}, text), redaction_mark) << text;
  }
}

TEST(Redaction, HidesHexInBothCases) {
  EXPECT_EQ(redacted({"correct-Jorse"}, "<636f72726563742d4a6f727365>"), "<***REDACTED***>");
  EXPECT_EQ(redacted({"correct-Jorse\n"}, "636F72726563742D4A6F7273650A"), "***REDACTED***0A");
  EXPECT_EQ(redacted({"hunter2"}, "68756e74657232"), "68756e74657232") << "too short to be sure";
}

TEST(Redaction, HidesBase64AtEveryAlignment) {
  // base64 of "correct-horse", and of it after one and two other bytes.
  EXPECT_EQ(redacted({"correct-horse"}, "[Y29ycmVjdC1ob3JzZQ==]"), "[***REDACTED***==]");
  const std::string one = redacted({"correct-horse"}, "YTpjb3JyZWN0LWhvcnNl");      // a:correct...
  const std::string two = redacted({"correct-horse"}, "YWI6Y29ycmVjdC1ob3JzZQ==");  // ab:...
  const std::string three = redacted({"correct-horse"}, "YWJjOmNvcnJlY3QtaG9yc2U=");  // abc:...
  for (const std::string& out : {one, two, three}) EXPECT_THAT(out, HasSubstr(redaction_mark));
  EXPECT_LE(one.size(), redaction_mark.size() + 5) << one;
  EXPECT_LE(three.size(), redaction_mark.size() + 9) << three;
}

TEST(Redaction, HidesUrlSafeBase64) {
  EXPECT_EQ(redacted({"\xfb\xff\xfe~~~???"}, "-__-fn5-Pz8_"), "***REDACTED***");
  EXPECT_EQ(redacted({"\xfb\xff\xfe~~~???"}, "+//+fn5+Pz8/"), "***REDACTED***");
}

TEST(Redaction, HidesAValueOfSeveralLinesInATerminalAndLineByLine) {
  const std::string key = "-----BEGIN KEY-----\nAAAAB3NzaC1yc2EAAAAD\nshort\n-----END KEY-----\n";
  const RedactionSet set{secrets_of({key})};
  EXPECT_EQ(redacted(set, {key}), "***REDACTED***\n");
  EXPECT_EQ(redacted(set, {"-----BEGIN KEY-----\r\nAAAAB3NzaC1yc2EAAAAD\r\nshort\r\n"
                           "-----END KEY-----\r\n"}),
            "***REDACTED***\r\n");
  EXPECT_EQ(redacted(set, {"> AAAAB3NzaC1yc2EAAAAD"}), "> ***REDACTED***");
  EXPECT_EQ(redacted(set, {"> short"}), "> short");
}

TEST(Redaction, HidesAValueThatIsLearnedInTheMiddleOfTheStream) {
  const RedactionSet narrow{secrets_of({"first-secret"})};
  const RedactionSet wide{secrets_of({"first-secret", "st-other"})};
  Redactor redactor{narrow};
  EXPECT_EQ(redactor.push("st-other fir"), "st-other ");
  redactor.widen(wide);
  EXPECT_EQ(redactor.push("st-other! first-sec"), "fir***REDACTED***! ");
  EXPECT_EQ(redactor.push("ret"), "***REDACTED***");
}

TEST(Redaction, KeepsAnOpenOccurrenceWhenTheSetGrows) {
  const RedactionSet narrow{secrets_of({"aaaa"})};
  const RedactionSet wide{secrets_of({"aaaa", "bbbb"})};
  Redactor redactor{narrow};
  EXPECT_EQ(redactor.push("xaaaaaa"), "x");
  redactor.widen(wide);
  EXPECT_EQ(redactor.push("acbbbb"), "***REDACTED***c");
  EXPECT_EQ(redactor.flush(), "***REDACTED***");
}

}  // namespace
}  // namespace berth::core
