#include "keeper/protocol/output.hpp"

#include "base/disk_room.hpp"
#include "base/files.hpp"
#include "support/full_disk.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace berth::keeper {
namespace {

class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/berth-output-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/x.out"; }
  OutputWriter writer(std::uint64_t bytes_max = 1000) { return {path(), bytes_max}; }
  std::vector<Record> records(std::uint64_t offset = 0) {
    std::vector<Record> found;
    auto reader = OutputReader::open(path(), offset);
    while (true) {
      auto record = reader->next();
      EXPECT_TRUE(record) << (record ? "" : record.error().message);
      if (!record || !*record) return found;
      found.push_back(**std::move(record));
    }
  }

 private:
  std::string folder_;
};

TEST(DiskReserve, IsAnEighthOfASmallDiskAnd64MiBOfALargeOne) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  EXPECT_EQ(disk_reserve(40 * mib), 5 * mib);
  EXPECT_EQ(disk_reserve(512 * mib), 64 * mib);
  EXPECT_EQ(disk_reserve(std::uint64_t{1} << 40), 64 * mib);
}

TEST_F(OutputFile, GivesBackItsRecordsInOrderAndFromEachOffset) {
  OutputWriter out = writer();
  out.append(Stream::out, "one", 11);
  out.append(Stream::err, std::string_view("\0", 1), 12);
  out.append(Stream::out, "three", 13);
  const std::vector<Record> all = records();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].stream, Stream::err);
  EXPECT_EQ(all[1].time_us, 12);
  EXPECT_EQ(all[1].bytes, std::string("\0", 1));
  EXPECT_EQ(records(all[2].offset).at(0).bytes, "three");
  EXPECT_EQ(all[2].next_offset, out.end());
}

TEST_F(OutputFile, CutAnywhereGivesTheWholeRecordsBeforeTheCut) {
  OutputWriter out = writer();
  out.append(Stream::out, "one", 1);
  const std::uint64_t border = out.end();
  out.append(Stream::out, "two", 2);
  for (std::uint64_t size = out.end() - 1; size > border; --size) {
    std::filesystem::resize_file(path(), size);
    EXPECT_EQ(records().size(), 1U) << "cut after " << size << " bytes";
  }
}

TEST_F(OutputFile, WithATailOfZerosEndsBeforeThem) {
  OutputWriter out = writer();
  out.append(Stream::out, "one", 1);
  std::filesystem::resize_file(path(), out.end() + 4096);
  EXPECT_EQ(records().size(), 1U);
}

TEST_F(OutputFile, ReadFromWhereNoRecordStartsIsAnError) {
  OutputWriter out = writer();
  out.append(Stream::out, std::string(100, '\xff'), 1);
  auto reader = OutputReader::open(path(), record_header_bytes + 3);
  EXPECT_FALSE(reader->next());
}

TEST_F(OutputFile, SaysOnceThatItsLimitIsReachedAndCountsTheRest) {
  OutputWriter out = writer(5);
  out.append(Stream::out, "abc", 1);
  out.append(Stream::err, "defg", 2);
  out.append(Stream::out, "hij", 3);
  const std::vector<Record> all = records();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].bytes, "de");
  EXPECT_EQ(all[2].stream, Stream::note);
  EXPECT_EQ(out.counts().out, 6U);
  EXPECT_EQ(out.counts().err, 4U);
  EXPECT_EQ(out.counts().over_limit, 5U);
}

TEST_F(OutputFile, OnAFullDiskCountsWhatIsLostAndSaysSoWhenItCan) {
  OutputWriter out = writer();
  out.append(Stream::out, "before", 1);
  {
    const tests::FullDisk full;
    out.append(Stream::out, "lost!", 2);
    out.append(Stream::out, "lost!", 3);
  }
  EXPECT_EQ(out.counts().lost, 10U);
  out.append(Stream::out, "after", 4);
  const std::vector<Record> all = records();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].stream, Stream::note);
  EXPECT_NE(all[1].bytes.find("lost 10 bytes"), std::string::npos) << all[1].bytes;
  EXPECT_EQ(all[2].bytes, "after");
}

TEST_F(OutputFile, IsMadeByTheFirstWords) {
  OutputWriter out = writer();
  out.finish(1);
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(records().empty());
  out.append(Stream::out, "one", 2);
  EXPECT_EQ(records().size(), 1U);
}

TEST_F(OutputFile, OfAnotherIsNotWrittenTo) {
  ASSERT_TRUE(create_file(path(), "of another", 0600));
  OutputWriter out = writer();
  out.append(Stream::out, "one", 1);
  EXPECT_EQ(out.counts().lost, 3U);
  EXPECT_EQ(read_file(path(), 100).value_or(""), "of another");
}

}  // namespace
}  // namespace berth::keeper
