#include "keeper/protocol/exec_journal.hpp"

#include "base/files.hpp"
#include "keeper/protocol/text_record.hpp"
#include "support/full_disk.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace berth::keeper {
namespace {

Ended record(const std::string& exec_id, Outcome outcome, int code = 0) {
  return {.exec_id = exec_id, .outcome = outcome, .code = code, .message = "a\nb\n\nexec_id x\n"};
}

class Journal : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/berth-journal-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }
  std::string path() const { return folder_ + "/" + journal_file; }
  // As a killed process or a full disk leaves it.
  void append_raw(std::string_view text) {
    std::ofstream{path(), std::ios::app | std::ios::binary} << text;
  }

 private:
  std::string folder_;
};

TEST_F(Journal, KnowsNothingBeforeItsFirstRecord) {
  const ExecJournal journal{folder()};
  EXPECT_EQ(find_exec(folder(), "a").value(), std::nullopt);
  EXPECT_EQ(read_exit(folder(), "a").error().code, Errc::exec_not_found);
  EXPECT_TRUE(read_execs(folder())->empty());
}

TEST_F(Journal, TheLastRecordOfACommandCounts) {
  ExecJournal journal{folder()};
  ASSERT_TRUE(journal.append(record("a", Outcome::running)));
  ASSERT_TRUE(journal.append(record("ab", Outcome::running)));
  EXPECT_EQ(read_exit(folder(), "a").error().code, Errc::exec_not_found);
  EXPECT_EQ(find_exec(folder(), "a").value()->outcome, Outcome::running);
  ASSERT_TRUE(journal.append(record("a", Outcome::exited, 3)));
  ASSERT_TRUE(journal.append(record("ab", Outcome::exited, 4)));
  EXPECT_EQ(read_exit(folder(), "a")->code, 3);
  EXPECT_EQ(read_exit(folder(), "ab")->code, 4);
  EXPECT_EQ(read_exit(folder(), "a")->message, record("", Outcome::exited).message);
  EXPECT_EQ(read_exit(folder(), "x").error().code, Errc::exec_not_found) << "is part of a message";
  const auto all = read_execs(folder());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at("ab").code, 4);
}

TEST_F(Journal, ARecordThatWasCutAnywhereIsPassedOverAlsoWhenAnotherFollows) {
  const std::string whole = "\n\n" + to_text(record("a", Outcome::exited, 9));
  // A record without its last newline is still complete.
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    std::filesystem::remove(path());
    ASSERT_TRUE(ExecJournal{folder()}.append(record("a", Outcome::exited, 1)));
    append_raw(whole.substr(0, size));
    ASSERT_EQ(read_exit(folder(), "a")->code, 1) << "cut after " << size;
    ASSERT_TRUE(ExecJournal{folder()}.append(record("b", Outcome::exited, 2)));
    ASSERT_EQ(read_exit(folder(), "a")->code, 1) << "cut after " << size;
    ASSERT_EQ(read_exit(folder(), "b")->code, 2) << "cut after " << size;
    ASSERT_EQ(read_execs(folder())->size(), 2U) << "cut after " << size;
  }
}

TEST_F(Journal, FindsWhatLiesFarBack) {
  ExecJournal journal{folder()};
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(journal.append(record("e" + std::to_string(i), Outcome::exited, i % 200)));
  }
  ASSERT_GT(std::filesystem::file_size(path()), std::size_t{1} << 20);
  for (const int i : {0, 1, 2499, 4998, 4999}) {
    EXPECT_EQ(read_exit(folder(), "e" + std::to_string(i))->code, i % 200);
  }
  EXPECT_EQ(find_exec(folder(), "e5000").value(), std::nullopt);
}

TEST_F(Journal, SaysWhenTheDiskTakesNothingAndGoesOnWhenItDoes) {
  ExecJournal journal{folder()};
  ASSERT_TRUE(journal.append(record("a", Outcome::running)));
  Result<> refused;
  {
    const tests::FullDisk full;
    refused = journal.append(record("a", Outcome::exited));
  }
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::io_failed);
  ASSERT_TRUE(journal.append(record("a", Outcome::exited, 5)));
  EXPECT_EQ(read_exit(folder(), "a")->code, 5);
}

TEST_F(Journal, WhatHappenedIsWrittenBeforeALongMessageAboutIt) {
  ExecJournal journal{folder()};
  Ended failed = record("a", Outcome::failed_to_start);
  failed.message = std::string(5000, 'm');
  failed.remedy = "r";
  ASSERT_TRUE(journal.append(failed));
  EXPECT_EQ(read_exit(folder(), "a")->message, failed.message);
  // A full disk cuts the long record short.
  ASSERT_EQ(::truncate(path().c_str(), 4096), 0);
  const Result<Ended> kept = read_exit(folder(), "a");
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->outcome, Outcome::failed_to_start);
  EXPECT_EQ(kept->message, "");
}

// The first record and two of these fit into the block that the first one allocates.
TEST_F(Journal, ARecordOfNumbersHasItsRoom) {
  Ended largest = record(std::string(64, 'x'), Outcome::failed_to_start, INT32_MIN);
  largest.fingerprint = largest.user_us = largest.system_us = UINT64_MAX;
  largest.resident_bytes_max = largest.major_faults = largest.blocks_in = UINT64_MAX;
  largest.blocks_out = largest.stdout_bytes = largest.stderr_bytes = UINT64_MAX;
  largest.bytes_over_limit = largest.bytes_lost = largest.output_end = UINT64_MAX;
  largest.oom_kills = UINT64_MAX;
  largest.started_us = largest.ended_us = INT64_MIN;
  largest.pid = largest.signal = largest.failed_errno = INT32_MIN;
  largest.left_behind = UINT32_MAX;
  largest.error_code = name_of(Errc::working_directory_missing);
  ExecJournal journal{folder()};
  ASSERT_TRUE(journal.append(largest));
  EXPECT_LE(std::filesystem::file_size(path()), 1280U);
}

TEST_F(Journal, ReservedRoomIsTakenButNotShown) {
  ExecJournal journal{folder()};
  ASSERT_TRUE(journal.append(record("a", Outcome::running)));
  struct stat before{};
  ASSERT_EQ(::stat(path().c_str(), &before), 0);
  journal.reserve(10);
  struct stat after{};
  ASSERT_EQ(::stat(path().c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  if (after.st_blocks == before.st_blocks) GTEST_SKIP() << "this file system reserves nothing";
  EXPECT_GE(after.st_blocks * 512, 10 * 2 * 1280);
}

}  // namespace
}  // namespace berth::keeper
