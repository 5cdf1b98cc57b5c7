#include "base/files.hpp"

#include "support/full_disk.hpp"
#include "support/temporary_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>

namespace berth {
namespace {

using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      found.push_back(entry.path().filename());
    }
    return found;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat found{};
    return ::stat(path.c_str(), &found) == 0 ? found.st_mode & 07777 : 0;
  }

  const tests::TemporaryFolder temporary_;
  const std::string& folder_ = temporary_.path();
};

TEST_F(FilesTest, CreateWritesTheWholeTextWithItsMode) {
  using namespace std::string_literals;
  const std::string text = "a\0b"s + std::string(200'000, 'x');
  ASSERT_TRUE(create_file(at("key"), text, 0600));
  EXPECT_EQ(read_file(at("key"), 1'000'000), text);
  EXPECT_EQ(mode_of(at("key")), 0600U);
  EXPECT_EQ(names(), std::vector<std::string>{"key"}) << "no draft is left";
}

TEST_F(FilesTest, CreateRefusesAFileThatIsThereAndKeepsIt) {
  ASSERT_TRUE(create_file(at("key"), "first", 0600));
  const Result<> again = create_file(at("key"), "second", 0600);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::conflict);
  EXPECT_EQ(again.error().message, at("key") + ": exists already");
  EXPECT_EQ(read_file(at("key"), 100), "first");
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(FilesTest, CreateDoesNotWriteThroughALink) {
  ASSERT_EQ(::symlink(at("target").c_str(), at("key").c_str()), 0);
  EXPECT_EQ(create_file(at("key"), "x", 0600).error().code, Errc::conflict);
  EXPECT_FALSE(std::filesystem::exists(at("target")));
}

// A large text widens the window in which a shared draft would be seen incomplete.
std::string text_of(int writer) {
  return std::string(100'000 + static_cast<std::size_t>(writer), static_cast<char>('a' + writer));
}

TEST_F(FilesTest, OfManyWhoCreateExactlyOneWinsAndItsTextIsWhole) {
  constexpr int writers = 8;
  for (int round = 0; round < 10; ++round) {
    const std::string path = at("key" + std::to_string(round));
    std::latch start{writers};
    std::array<bool, writers> won{};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < writers; ++i) {
        threads.emplace_back([&, i] {
          start.arrive_and_wait();
          const Result<> done = create_file(path, text_of(i), 0600);
          won[static_cast<std::size_t>(i)] = done.has_value();
          if (!done) EXPECT_EQ(done.error().code, Errc::conflict) << done.error().message;
        });
      }
    }
    ASSERT_EQ(std::ranges::count(won, true), 1);
    const auto winner = static_cast<int>(std::ranges::find(won, true) - won.begin());
    ASSERT_EQ(read_file(path, 1'000'000), text_of(winner));
  }
  EXPECT_EQ(names().size(), 10U);
}

TEST_F(FilesTest, AReaderSeesTheOldTextOrTheNewWhileOthersReplaceIt) {
  constexpr int writers = 4;
  const std::string path = at("state");
  ASSERT_TRUE(replace_file(path, text_of(0), 0600));
  std::atomic<int> writing = writers;
  std::vector<std::jthread> threads;
  for (int i = 0; i < writers; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 10; ++n) {
        const Result<> done = replace_file(path, text_of(i), 0600);
        EXPECT_TRUE(done) << done.error().message;
      }
      --writing;
    });
  }
  while (writing > 0) {
    const Result<std::string> seen = read_file(path, 1'000'000);
    ASSERT_TRUE(seen) << seen.error().message;
    ASSERT_FALSE(seen->empty());
    ASSERT_EQ(*seen, text_of(seen->front() - 'a'));
  }
  threads.clear();
  EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

TEST_F(FilesTest, ReplaceSetsTheModeOfTheNewFile) {
  ASSERT_TRUE(create_file(at("key"), "old", 0644));
  ASSERT_TRUE(replace_file(at("key"), "new", 0600));
  EXPECT_EQ(mode_of(at("key")), 0600U);
  EXPECT_EQ(read_file(at("key"), 10), "new");
}

TEST_F(FilesTest, AFailedReplaceKeepsWhatWasThere) {
  ASSERT_EQ(::mkdir(at("key").c_str(), 0700), 0);
  const Result<> done = replace_file(at("key"), "new", 0600);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::io_failed);
  EXPECT_THAT(done.error().message, HasSubstr("replace " + at("key") + ": "));
  EXPECT_EQ(names(), std::vector<std::string>{"key"});
}

TEST_F(FilesTest, WantOfRoomHasACodeAndARemedyOfItsOwn) {
  for (const int error_number : {ENOSPC, EDQUOT}) {
    const Error full = io_failure("mkdir", "x", error_number).error();
    EXPECT_EQ(full.code, Errc::disk_full);
    EXPECT_THAT(full.remedy, HasSubstr("df -i"));
  }
  EXPECT_EQ(io_failure("mkdir", "x", EACCES).error().code, Errc::io_failed);
}

TEST_F(FilesTest, OnAFullDiskTheOldTextStaysAndNothingIsLeftBehind) {
  ASSERT_TRUE(create_file(at("key"), "old", 0600));
  Result<> created;
  Result<> replaced;
  {
    const tests::FullDisk full;
    created = create_file(at("other"), "new", 0600);
    replaced = replace_file(at("key"), "new", 0600);
  }
  ASSERT_FALSE(created || replaced);
  EXPECT_EQ(created.error().message, "write " + at("other") + ": File too large");
  EXPECT_EQ(replaced.error().message, "write " + at("key") + ": File too large");
  EXPECT_EQ(read_file(at("key"), 10), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"key"});
}

TEST_F(FilesTest, AMissingFolderIsNamed) {
  const std::string path = at("none/key");
  for (const Result<>& done : {create_file(path, "x", 0600), replace_file(path, "x", 0600)}) {
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::io_failed);
    EXPECT_EQ(done.error().message, "create " + path + ": No such file or directory");
  }
}

TEST_F(FilesTest, ReadStopsAtItsLimit) {
  ASSERT_TRUE(create_file(at("f"), std::string(1000, 'x'), 0600));
  EXPECT_TRUE(read_file(at("f"), 1000));
  const Result<std::string> cut = read_file(at("f"), 999);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message, at("f") + ": is larger than 999 bytes");
  EXPECT_FALSE(read_file("/dev/zero", 100'000)) << "an endless file ends too";
}

TEST_F(FilesTest, ReadNamesTheFileItCannotRead) {
  EXPECT_EQ(read_file(at("none"), 10).error().message,
            "open " + at("none") + ": No such file or directory");
  EXPECT_THAT(read_file(folder_, 10).error().message, HasSubstr("Is a directory"));
}

TEST_F(FilesTest, ReadFdReadsAPipeToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Fd out{ends[0]};
  {
    const Fd in{ends[1]};
    ASSERT_EQ(::write(in.get(), "key", 3), 3);
  }
  EXPECT_EQ(read_fd(out.get(), 10, "fd 3"), "key");
  EXPECT_THAT(read_fd(-1, 10, "fd 9").error().message, HasSubstr("read fd 9: "));
}

TEST_F(FilesTest, MakesEveryMissingFolderOfAPath) {
  ASSERT_TRUE(make_directories(at("a/b//c"), 0700));
  EXPECT_EQ(mode_of(at("a/b/c")), 0700U);
  EXPECT_TRUE(make_directories(at("a/b/c/"), 0700)) << "it may be there already";
  EXPECT_TRUE(make_directories("/", 0700));
}

TEST_F(FilesTest, MakesNoFolderBelowAFile) {
  ASSERT_TRUE(create_file(at("f"), "", 0600));
  EXPECT_THAT(make_directories(at("f"), 0700).error().message, HasSubstr("is not a directory"));
  EXPECT_THAT(make_directories(at("f/g"), 0700).error().message, HasSubstr("Not a directory"));
  EXPECT_FALSE(make_directories("", 0700));
}

TEST(ParentOf, IsTheFolderOfAName) {
  EXPECT_EQ(parent_of("/a/b"), "/a");
  EXPECT_EQ(parent_of("/a"), "/");
  EXPECT_EQ(parent_of("a"), ".");
  EXPECT_EQ(parent_of("a/b"), "a");
}

}  // namespace
}  // namespace berth
