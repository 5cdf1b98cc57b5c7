#include "base/files.hpp"
#include "contract/store_fixture.hpp"
#include "store/companies.hpp"

#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

// What can be wrong with a SQLite file, and what Berth reports about it.
namespace berth::store {
namespace {

class SqliteFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/berth.db"; }
  Result<std::unique_ptr<Database>> open() const {
    return open_database({.url = "sqlite:" + path()});
  }

  // Every refusal has its own code, names the file and gives a remedy.
  void expect_refused(Errc code) const {
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(name_of(opened.error().code), name_of(code)) << opened.error().message;
    EXPECT_TRUE(opened.error().message.contains(folder_.path())) << opened.error().message;
    EXPECT_FALSE(opened.error().remedy.empty());
  }

  TemporaryFolder folder_;
};

// A connection that bypasses the store.
class RawSqlite {
 public:
  explicit RawSqlite(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &handle_), SQLITE_OK);
  }
  RawSqlite(const RawSqlite&) = delete;
  RawSqlite& operator=(const RawSqlite&) = delete;
  ~RawSqlite() { sqlite3_close(handle_); }
  void run(const char* sql) {
    EXPECT_EQ(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle_);
  }
  // The first column of the first row.
  std::string ask(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr), SQLITE_OK);
    std::string answer;
    if (sqlite3_step(statement) == SQLITE_ROW) {
      answer = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    }
    sqlite3_finalize(statement);
    return answer;
  }

 private:
  sqlite3* handle_ = nullptr;
};

// A small file system over the folder, for as long as the test needs it.
class SmallDisk {
 public:
  SmallDisk(std::string folder, unsigned long flags, const char* options)
      : folder_(std::move(folder)),
        there_(::mount("tmpfs", folder_.c_str(), "tmpfs", flags, options) == 0) {}
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (there_) ::umount(folder_.c_str());
  }
  bool there() const { return there_; }
  static constexpr auto advice = "a disk of the test's own needs the right to mount: run as root";

 private:
  std::string folder_;
  bool there_;
};

TEST_F(SqliteFileTest, ANewFileIsForItsOwnerOnly) {
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  for (const char* suffix : {"", "-wal", "-shm", ".lock"}) {
    struct stat found{};
    ASSERT_EQ(::stat((path() + suffix).c_str(), &found), 0) << suffix;
    EXPECT_EQ(found.st_mode & 0777, 0600U) << suffix;
  }
}

TEST_F(SqliteFileTest, TheLogMovesToTheFileWhileNobodyWaits) {
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  const auto write = [&](std::string_view sql, std::vector<Value> values) {
    return transact(&write_now, **opened, [&](Session& s) -> Result<> {
      BERTH_DO(s.run(sql, values));
      return {};
    });
  };
  ASSERT_TRUE(write("create table filler (text text)", {}));
  constexpr std::size_t row_bytes = 40'000;
  constexpr std::size_t rows = 400;
  for (std::size_t i = 0; i < rows; ++i) {
    ASSERT_TRUE(write("insert into filler values ($1)", {Value{std::string(row_bytes, 'x')}}));
  }
  EXPECT_LT(std::filesystem::file_size(path() + "-wal"), rows * row_bytes / 2);
  EXPECT_GT(std::filesystem::file_size(path()), rows * row_bytes / 2);
  EXPECT_EQ(RawSqlite{path()}.ask("select count(*) from filler"), std::to_string(rows));
}

TEST_F(SqliteFileTest, ASecondServerIsRefusedWithThePidOfTheFirst) {
  auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(name_of(second.error().code), name_of(Errc::store_locked));
  EXPECT_TRUE(second.error().message.contains(std::to_string(::getpid())))
      << second.error().message;
  first->reset();
  EXPECT_WORKS(open());
}

TEST_F(SqliteFileTest, AFileThatAnotherProgramLocksIsRefused) {
  ASSERT_TRUE(open());
  RawSqlite other{path()};
  other.run("begin immediate");
  expect_refused(Errc::store_locked);
}

TEST_F(SqliteFileTest, AFileThatIsNoDatabaseIsRefusedAndLeftAsItWas) {
  const std::string text(8192, 'x');
  std::ofstream{path()} << text;
  expect_refused(Errc::store_corrupt);
  EXPECT_EQ(read_file(path(), 1 << 20).value_or(""), text);
}

TEST_F(SqliteFileTest, ADamagedDatabaseIsRefused) {
  ASSERT_TRUE(open());
  {
    std::fstream file{path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(100);
    file << std::string(4096 * 4, '\xff');
  }
  expect_refused(Errc::store_corrupt);
}

TEST_F(SqliteFileTest, ADirectoryIsRefused) {
  std::filesystem::create_directory(path());
  expect_refused(Errc::store_corrupt);
}

TEST_F(SqliteFileTest, AMissingFolderIsNamed) {
  const auto opened = open_database({.url = "sqlite:" + folder_.path() + "/none/berth.db"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(name_of(opened.error().code), name_of(Errc::store_unreachable));
  EXPECT_TRUE(opened.error().message.contains(folder_.path() + "/none"));
  EXPECT_TRUE(opened.error().remedy.contains("mkdir"));
}

TEST_F(SqliteFileTest, AUrlThatNamesNoDatabaseIsRefusedWithoutRepeatingIt) {
  for (const char* url : {"", "sqlite:", "sqlite::memory:", "mysql://me:hunter2@host/db"}) {
    const auto opened = open_database({.url = url});
    ASSERT_FALSE(opened) << url;
    EXPECT_EQ(name_of(opened.error().code), name_of(Errc::config_invalid)) << url;
    EXPECT_FALSE(opened.error().message.contains("hunter2"));
  }
}

// Permission bits do not bind root, so a child gives up that privilege first.
template <class Check>
int exit_code_of_nobody(Check check) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && (::setgid(nobody) != 0 || ::setuid(nobody) != 0)) ::_exit(9);
    ::_exit(check() ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

TEST_F(SqliteFileTest, AFolderWithoutWriteAccessIsReadOnly) {
  ::chmod(folder_.path().c_str(), 0555);
  EXPECT_EQ(exit_code_of_nobody([&] {
              const auto opened = open();
              return !opened && opened.error().code == Errc::store_read_only &&
                     opened.error().message.contains(path()) && !opened.error().remedy.empty();
            }),
            0);
  ::chmod(folder_.path().c_str(), 0700);
}

TEST_F(SqliteFileTest, AFileWithoutWriteAccessIsReadOnly) {
  ASSERT_TRUE(open());
  ::chmod(folder_.path().c_str(), 0777);
  ::chmod((path() + ".lock").c_str(), 0666);
  ::chmod(path().c_str(), 0444);
  EXPECT_EQ(exit_code_of_nobody([&] {
              const auto opened = open();
              return !opened && opened.error().code == Errc::store_read_only;
            }),
            0);
}

TEST_F(SqliteFileTest, WhatIsCommittedIsInTheFileForAnyProgramAtOnce) {
  const auto opened = open();
  ASSERT_TRUE(opened) << opened.error().message;
  RawSqlite other{path()};
  FakeClock clock;
  SeededRandom random{1};
  std::int64_t whole = 0;
  // Less than the log buffers, as much as it buffers, and far more.
  for (const std::size_t size : {10, 4096, 122'880, 131'072, 3'000'000}) {
    const auto insert = [&](Session& s) {
      return insert_company(s, {.id = core::CompanyId::make(random, clock.now()),
                                .name = "large",
                                .description = std::string(size, 'x'),
                                .default_environment_id = {},
                                .created_at = clock.now(),
                                .updated_at = clock.now()});
    };
    const auto insert_and_fail = [&](Session& s) -> Result<> {
      BERTH_DO(insert(s));
      return fail(Errc::conflict, "taken back");
    };
    EXPECT_FALSE(write_now(**opened, insert_and_fail));
    EXPECT_WORKS(write_now(**opened, insert));
    whole += static_cast<std::int64_t>(size);
    EXPECT_EQ(other.ask("select sum(length(description)) from companies"), std::to_string(whole));
    EXPECT_EQ(other.ask("pragma integrity_check"), "ok");
  }
}

TEST_F(SqliteFileTest, AFullFileSystemIsSaidAndNothingOfTheWorkStays) {
  const SmallDisk disk{folder_.path(), 0, "size=1200k"};
  if (!disk.there()) GTEST_SKIP() << SmallDisk::advice;
  FakeClock clock;
  SeededRandom random{1};
  const auto insert_large = [&](Session& s) {
    return insert_company(s, {.id = core::CompanyId::make(random, clock.now()),
                              .name = "large",
                              .description = std::string(64 * 1024, 'x'),
                              .default_environment_id = {},
                              .created_at = clock.now(),
                              .updated_at = clock.now()});
  };
  {
    auto opened = open();
    ASSERT_TRUE(opened) << opened.error().message;
    std::int64_t kept = 0;
    Result<> last;
    while (last && kept < 100) {
      last = write_now(**opened, insert_large);
      kept += last ? 1 : 0;
    }
    ASSERT_FALSE(last) << "the disk never filled";
    EXPECT_EQ(name_of(last.error().code), name_of(Errc::store_full)) << last.error().message;
    EXPECT_EQ(last.error().message, "the disk of the database is full") << "its path is not shown";
    const auto count = transact(&read_now, **opened, [](Session& s) { return count_companies(s); });
    ASSERT_TRUE(count) << count.error().message;
    EXPECT_EQ(*count, kept);
  }
}

TEST_F(SqliteFileTest, AFileSystemWithoutRoomForTheFirstFileIsFull) {
  const SmallDisk disk{folder_.path(), 0, "size=64k"};
  if (!disk.there()) GTEST_SKIP() << SmallDisk::advice;
  expect_refused(Errc::store_full);
}

TEST_F(SqliteFileTest, AReadOnlyFileSystemIsSaid) {
  const SmallDisk disk{folder_.path(), MS_RDONLY, "size=64k"};
  if (!disk.there()) GTEST_SKIP() << SmallDisk::advice;
  expect_refused(Errc::store_read_only);
}

}  // namespace
}  // namespace berth::store
