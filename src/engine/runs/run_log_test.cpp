#include "engine/runs/run_log.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

namespace berth::engine {
namespace {

using core::OutputStream;

class RunLog : public testing::Test {
 protected:
  void SetUp() override {
    auto logs = RunLogs::open(folder_.path() + "/runs");
    ASSERT_TRUE(logs) << logs.error().message;
    logs_.emplace(*std::move(logs));
  }
  RunLogWriter writer() { return *logs_->writer(run_); }
  std::string text_from(std::int64_t offset) {
    std::string out;
    while (true) {
      const auto block = logs_->read(run_, offset, 1000);
      EXPECT_TRUE(block) << block.error().message;
      if (!block || block->pieces.empty()) return out;
      for (const core::OutputRecord& piece : block->pieces) {
        const std::int64_t cut = std::max<std::int64_t>(0, offset - piece.offset);
        out += piece.bytes.substr(static_cast<std::size_t>(cut));
        offset = piece.offset + static_cast<std::int64_t>(piece.bytes.size());
      }
    }
  }
  std::string file(std::string_view ending) const {
    return folder_.path() + "/runs/" + run_.str() + std::string{ending};
  }

  tests::TemporaryFolder folder_;
  core::RunId run_ = *core::RunId::parse("00000000-0000-7000-8000-000000000001");
  std::optional<RunLogs> logs_;
};

TEST_F(RunLog, GivesBackWhatWasAppendedFromAnyPlace) {
  RunLogWriter log = writer();
  std::string all;
  for (int number = 0; number < 500; ++number) {
    const std::string line = "line " + std::to_string(number) + "\n";
    const auto stream = number % 3 == 0 ? OutputStream::stderr_ : OutputStream::stdout_;
    ASSERT_TRUE(log.append(stream, Time{number}, line));
    all += line;
  }
  EXPECT_EQ(log.size(), static_cast<std::int64_t>(all.size()));
  for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{777}, all.size()}) {
    const auto place = static_cast<std::int64_t>(offset);
    EXPECT_EQ(text_from(place), all.substr(offset)) << offset;
    EXPECT_EQ(logs_->read_bytes(run_, place, 1U << 20), all.substr(offset)) << offset;
    EXPECT_EQ(logs_->read_bytes(run_, place, 100), all.substr(offset, 100)) << offset;
  }
  const auto block = logs_->read(run_, 0, 1);
  ASSERT_TRUE(block && !block->pieces.empty());
  EXPECT_EQ(block->pieces.front().stream, OutputStream::stderr_);
  EXPECT_EQ(block->pieces.front().seq, 1);
}

TEST_F(RunLog, GivesManySmallPiecesAtOnceAndInOrder) {
  RunLogWriter log = writer();
  constexpr std::int64_t count = 5000;
  for (std::int64_t number = 0; number < count; ++number) {
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{number}, "x"));
  }
  const auto block = logs_->read(run_, 1000, 1U << 20);
  ASSERT_TRUE(block) << block.error().message;
  ASSERT_EQ(block->pieces.size(), static_cast<std::size_t>(count - 1000));
  for (std::size_t i = 0; i < block->pieces.size(); ++i) {
    const auto place = static_cast<std::int64_t>(1000 + i);
    ASSERT_EQ(block->pieces[i].seq, place + 1);
    ASSERT_EQ(block->pieces[i].at, Time{place});
    ASSERT_EQ(block->pieces[i].bytes, "x");
  }
  EXPECT_EQ(logs_->read(run_, 0, 1500)->pieces.size(), 1500U) << "no more than was asked for";
}

TEST_F(RunLog, GivesNoMoreThanSoManyPiecesHoweverManyBytesAreWanted) {
  RunLogWriter log = writer();
  constexpr std::size_t pieces_max = 8192;
  const std::string all(pieces_max + 10, 'x');
  for (const char c : all) ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, {&c, 1}));
  EXPECT_EQ(logs_->read(run_, 0, 1U << 24)->pieces.size(), pieces_max);
  EXPECT_EQ(logs_->read(run_, pieces_max, 1U << 24)->pieces.size(), 10U);
}

TEST_F(RunLog, SaysThatItsIndexIsDamaged) {
  {
    RunLogWriter log = writer();
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "first"));
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{2}, "second"));
  }
  auto index = read_file(file(".index"), 1000);
  ASSERT_TRUE(index);
  index->at(24) = 77;  // where the second piece begins
  ASSERT_TRUE(replace_file(file(".index"), *index, 0600));
  const auto block = logs_->read(run_, 0, 1000);
  ASSERT_FALSE(block);
  EXPECT_EQ(block.error().code, Errc::io_failed);
}

TEST_F(RunLog, OfARunThatSaidNothingIsEmpty) {
  EXPECT_FALSE(logs_->has(run_));
  EXPECT_EQ(text_from(0), "");
  EXPECT_EQ(logs_->read_bytes(run_, 0, 1000), "");
}

TEST_F(RunLog, PassesOverWhatAnEarlierWriterHasWritten) {
  const std::string first(100'000, 'a');
  const std::string second(50'000, 'b');
  {
    RunLogWriter log = writer();
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, first));
  }
  RunLogWriter again = writer();
  ASSERT_TRUE(again.append(OutputStream::stdout_, Time{1}, first));
  ASSERT_TRUE(again.append(OutputStream::stdout_, Time{2}, second));
  EXPECT_EQ(text_from(0), first + second);
  // The hash equals that of an uninterrupted writer.
  const auto hash = again.finish();
  ASSERT_TRUE(hash);
  run_ = *core::RunId::parse("00000000-0000-7000-8000-000000000002");
  RunLogWriter whole = writer();
  ASSERT_TRUE(whole.append(OutputStream::stdout_, Time{1}, first + second));
  EXPECT_EQ(*hash, *whole.finish());
}

TEST_F(RunLog, GoesOnWhereATornPieceWasCutOff) {
  {
    RunLogWriter log = writer();
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "whole\n"));
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{2}, "torn\n"));
  }
  // As a crash leaves it: all bytes are present, but only part of the entry.
  ASSERT_EQ(::truncate(file(".index").c_str(), 24 + 10), 0);
  EXPECT_EQ(text_from(0), "whole\n");
  EXPECT_EQ(logs_->read_bytes(run_, 0, 1000), "whole\n");
  RunLogWriter log = writer();
  ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "whole\n"));
  ASSERT_TRUE(log.append(OutputStream::stdout_, Time{2}, "torn\n"));
  EXPECT_EQ(text_from(0), "whole\ntorn\n");
}

TEST_F(RunLog, IsWrittenAgainWhenTheDiskHasLessThanTheIndexSays) {
  {
    RunLogWriter log = writer();
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "abcdef"));
  }
  ASSERT_EQ(::truncate(file(".log").c_str(), 2), 0);
  RunLogWriter log = writer();
  EXPECT_EQ(log.size(), 0);
  ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "abcdef"));
  EXPECT_EQ(text_from(0), "abcdef");
}

TEST_F(RunLog, IsGoneWhenItIsRemoved) {
  {
    RunLogWriter log = writer();
    ASSERT_TRUE(log.append(OutputStream::stdout_, Time{1}, "x"));
  }
  ASSERT_TRUE(logs_->remove(run_));
  EXPECT_FALSE(logs_->has(run_));
  EXPECT_TRUE(logs_->remove(run_)) << "twice is fine";
}

}  // namespace
}  // namespace berth::engine
