#include "core/output/log_lines.hpp"

#include "base/json/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::core {
namespace {

struct Line {
  std::string ts;
  std::string stream;
  std::string chunk;
  std::int64_t seq = 0;
};
BOOST_DESCRIBE_STRUCT(Line, (), (ts, stream, chunk, seq))

// Records of the texts, alternating stdout (even) and stderr (odd).
std::vector<OutputRecord> records_of(const std::vector<std::string_view>& texts) {
  std::vector<OutputRecord> out;
  std::int64_t offset = 0;
  for (const std::string_view text : texts) {
    const auto seq = static_cast<std::int64_t>(out.size()) + 1;
    out.push_back({.seq = seq,
                   .offset = offset,
                   .at = Time{1'794'710'348'817},
                   .stream = seq % 2 == 1 ? OutputStream::stdout_ : OutputStream::stderr_,
                   .bytes = text});
    offset += static_cast<std::int64_t>(text.size());
  }
  return out;
}

std::vector<Line> parsed(const LogPage& page) {
  std::vector<Line> out;
  std::string_view rest = page.content;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    auto line = decode_text<Line>(rest.substr(0, end));
    EXPECT_TRUE(line) << rest;
    if (!line || end == rest.npos) break;
    out.push_back(*std::move(line));
    rest.remove_prefix(end + 1);
  }
  return out;
}

TEST(LogLines, HaveTheShapeOfTheApi) {
  const auto records = records_of({"say \"hi\"\n"});
  EXPECT_EQ(log_lines(records, 0, 4096).content,
            R"({"ts":"2026-11-15T02:39:08.817Z","stream":"stdout","chunk":"say \"hi\"\n","seq":1})"
            "\n");
}

TEST(LogLines, KeepStreamsApartAndInOrder) {
  const auto records = records_of({"out", "err", "", "more"});
  const LogPage page = log_lines(records, 0, 4096);
  const auto lines = parsed(page);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].stream, "stderr");
  EXPECT_EQ(lines[1].chunk, "err");
  EXPECT_EQ(lines[2].seq, 4);
  EXPECT_EQ(page.next_offset, 10);
}

TEST(LogLines, EscapeEveryByteSoThatJsonReadsItBack) {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\u20ac\U0001F600";
  const std::vector<std::string_view> texts{all};
  const auto lines = parsed(log_lines(records_of(texts), 0, 4096));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].chunk, all);
}

TEST(LogLines, ReplaceWhatIsNoTextInTheViewOnly) {
  const std::string_view bytes{"a\xff\0\xe2\x82z", 6};
  const auto records = records_of({bytes});
  const auto lines = parsed(log_lines(records, 0, 4096));
  ASSERT_EQ(lines.size(), 1U);
  const std::string expected{"a\ufffd\0\ufffd\ufffdz", 12};
  EXPECT_EQ(lines[0].chunk, expected);
  EXPECT_EQ(log_bytes(records, 0, 4096, std::nullopt).content, bytes);
}

TEST(LogLines, AreReadWholeWithAnyLimit) {
  std::string mixed;
  for (int i = 0; i < 200; ++i) mixed += i % 3 == 0 ? "\u20ac" : i % 3 == 1 ? "\x01" : "xyz";
  const std::vector<std::string_view> texts{mixed, "short", mixed, "\U0001F600\xff"};
  const auto records = records_of(texts);
  std::string whole;
  for (const std::string_view text : texts) whole += text;
  for (std::size_t limit = 1; limit < 2500; limit += 7) {
    std::int64_t offset = 0;
    std::map<std::int64_t, std::string> by_seq;
    for (;;) {
      const LogPage page = log_lines(records, offset, limit);
      ASSERT_LE(page.content.size(), std::max(limit, log_page_bytes_min));
      for (const Line& line : parsed(page)) by_seq[line.seq] += line.chunk;
      if (page.next_offset == offset) break;
      offset = page.next_offset;
    }
    ASSERT_EQ(offset, static_cast<std::int64_t>(whole.size())) << limit;
    EXPECT_EQ(by_seq[1], mixed) << limit;
    EXPECT_EQ(by_seq[4], "\U0001F600\ufffd");
  }
}

TEST(LogLines, SayWhereTheyStayedWhenThereIsNothingNew) {
  const auto records = records_of({"abc"});
  const LogPage page = log_lines(records, 3, 4096);
  EXPECT_EQ(page.content, "");
  EXPECT_EQ(page.next_offset, 3);
  EXPECT_EQ(log_lines({}, 17, 4096).next_offset, 17);
}

TEST(LogBytes, GiveOneStreamAndPassOverTheOther) {
  const auto records = records_of({"out1 ", "err1 ", "out2", "err2"});
  const LogPage page = log_bytes(records, 2, 4096, OutputStream::stdout_);
  EXPECT_EQ(page.content, "t1 out2");
  EXPECT_EQ(page.next_offset, 18);
  EXPECT_EQ(log_bytes(records, 0, 4096, OutputStream::stderr_).content, "err1 err2");
}

TEST(LogBytes, StopAtTheLimitAndGoOnFromThere) {
  const auto records = records_of({"abcdef", "XY", "ghi"});
  std::string out;
  std::int64_t offset = 0;
  for (;;) {
    const LogPage page = log_bytes(records, offset, 2, OutputStream::stdout_);
    ASSERT_LE(page.content.size(), 2U);
    out += page.content;
    if (page.next_offset == offset) break;
    offset = page.next_offset;
  }
  EXPECT_EQ(out, "abcdefghi");
}

TEST(RecordCutter, NeverCutsACharacterAndLosesNothing) {
  const std::string_view text = "a\u00e9\u20ac\U0001F600z\xff\xe2\x82";
  for (std::size_t i = 0; i <= text.size(); ++i) {
    for (std::size_t j = i; j <= text.size(); ++j) {
      RecordCutter cutter;
      std::string out;
      for (const std::string_view chunk :
           {text.substr(0, i), text.substr(i, j - i), text.substr(j)}) {
        const std::string_view record = cutter.push(chunk);
        EXPECT_EQ(cut_character_length(record), 0U);
        out += record;
      }
      ASSERT_EQ(out + cutter.flush(), text);
    }
  }
}

TEST(RecordCutter, WithholdsNothingOfPlainText) {
  RecordCutter cutter;
  EXPECT_EQ(cutter.push("prompt> "), "prompt> ");
  EXPECT_EQ(cutter.push("\xe2\x82"), "");
  EXPECT_EQ(cutter.push("\xac"), "\u20ac");
  EXPECT_EQ(cutter.flush(), "");
}

TEST(LossNotes, TellsTheFirstLossAndTheSumOfAll) {
  LossNotes notes;
  EXPECT_EQ(notes.take("output limit reached"), "output limit reached");
  EXPECT_EQ(notes.take("lost 10 bytes of output: File too large"),
            "lost 10 bytes of output: File too large");
  EXPECT_EQ(notes.sum(), std::nullopt) << "that has been told";
  for (int i = 0; i < 70; ++i) {
    EXPECT_EQ(notes.take("lost 10 bytes of output: File too large"), std::nullopt);
  }
  EXPECT_EQ(notes.take("lost patience"), "lost patience");
  EXPECT_EQ(notes.take("lost 5 bytes"), "lost 5 bytes");
  EXPECT_EQ(notes.sum(), "lost 710 bytes of output: File too large (in all)");
}

}  // namespace
}  // namespace berth::core
