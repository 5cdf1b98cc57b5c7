#include "base/remove_tree.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>

namespace berth {
namespace {

namespace fs = std::filesystem;

// Root may change any folder, so as root the test switches to an unprivileged user.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) before_ = ::setfsuid(nobody);
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() { ::setfsuid(static_cast<uid_t>(before_)); }

  static constexpr uid_t nobody = 65534;

 private:
  int before_ = static_cast<int>(::geteuid());
};

void give_to_nobody(const std::string& path) {
  if (::geteuid() == 0) ASSERT_EQ(::lchown(path.c_str(), AsNobody::nobody, AsNobody::nobody), 0);
}

TEST(RemoveTree, LeavesNothingOfFilesFoldersAndLinksButWhatLinksPointTo) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.file("kept"));
  std::ofstream{folder.file("kept/file")} << "x";
  fs::create_directories(folder.file("tree/a/b"));
  std::ofstream{folder.file("tree/a/b/file")} << "x";
  fs::create_symlink(folder.file("kept"), folder.file("tree/to-folder"));
  fs::create_symlink(folder.file("kept/file"), folder.file("tree/a/to-file"));
  fs::create_symlink("nowhere", folder.file("tree/a/to-nowhere"));
  ASSERT_EQ(::mkfifo(folder.file("tree/fifo").c_str(), 0600), 0);
  const auto removed = remove_tree(folder.file("tree"));
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*names_in(folder.path()), std::vector<std::string>{"kept"});
  EXPECT_TRUE(fs::exists(folder.file("kept/file")));
}

TEST(EmptyFolder, LeavesTheFolderAsItIsAndNothingInIt) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.file("kept"));
  std::ofstream{folder.file("kept/file")} << "x";
  fs::create_directories(folder.file("top/a/b"));
  std::ofstream{folder.file("top/a/b/.file")} << "x";
  fs::create_directory_symlink(folder.file("kept"), folder.file("top/way"));
  ASSERT_EQ(::chmod(folder.file("top").c_str(), 01777), 0);
  Fd top{::open(folder.file("top").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const auto emptied = empty_folder(std::move(top), "top");
  ASSERT_TRUE(emptied) << emptied.error().message;
  EXPECT_TRUE(fs::is_empty(folder.file("top")));
  struct stat seen{};
  ASSERT_EQ(::stat(folder.file("top").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777, 01777U);
  EXPECT_TRUE(fs::exists(folder.file("kept/file")));
}

TEST(RemoveTree, OfWhatIsNotThereIsFine) {
  const tests::TemporaryFolder folder;
  EXPECT_TRUE(remove_tree(folder.file("missing")));
  EXPECT_TRUE(remove_tree(folder.file("missing/below")));
}

TEST(RemoveTree, RemovesALinkToAFolderAndNotTheFolder) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.file("kept"));
  fs::create_symlink(folder.file("kept"), folder.file("link"));
  ASSERT_TRUE(remove_tree(folder.file("link")));
  EXPECT_EQ(*names_in(folder.path()), std::vector<std::string>{"kept"});
}

TEST(RemoveTree, RemovesFoldersThatWereMadeUnwritableOrUnreadable) {
  const tests::TemporaryFolder folder;
  give_to_nobody(folder.path());
  for (const char* path : {"tree", "tree/closed", "tree/closed/inner", "tree/locked",
                           "tree/locked/closed", "tree/locked/closed/deeper"}) {
    fs::create_directory(folder.file(path));
    give_to_nobody(folder.file(path));
  }
  for (const char* path : {"tree/locked/file", "tree/locked/closed/deeper/file"}) {
    std::ofstream{folder.file(path)} << "x";
    give_to_nobody(folder.file(path));
  }
  for (const char* path : {"tree/locked/closed/deeper", "tree/locked/closed", "tree/locked",
                           "tree/closed/inner", "tree/closed", "tree"}) {
    const bool closed = std::string_view{path}.ends_with("closed");
    const bool readable = std::string_view{path}.ends_with("deeper");
    ASSERT_EQ(::chmod(folder.file(path).c_str(), closed ? 0 : readable ? 0400 : 0500), 0);
  }
  const AsNobody nobody;
  const auto removed = remove_tree(folder.file("tree"));
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(names_in(folder.path())->empty());
}

TEST(RemoveTree, RemovesATreeThatIsDeeperThanAPathCanBeLong) {
  const tests::TemporaryFolder folder;
  const std::string name(200, 'd');
  fs::create_directory(folder.file("tree"));
  Fd at{::open(folder.file("tree").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  for (int depth = 0; depth < 1500; ++depth) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    at = Fd{::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    ASSERT_TRUE(at);
  }
  at = Fd{};
  const auto removed = remove_tree(folder.file("tree"));
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(names_in(folder.path())->empty());
}

TEST(RemoveTree, SaysWhatItCouldNotRemove) {
  const tests::TemporaryFolder folder;
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make what its user cannot remove";
  fs::create_directories(folder.file("tree/foreign"));
  std::ofstream{folder.file("tree/foreign/file")} << "x";
  give_to_nobody(folder.path());
  give_to_nobody(folder.file("tree"));
  const AsNobody nobody;
  const auto removed = remove_tree(folder.file("tree"));
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, Errc::io_failed);
  EXPECT_NE(removed.error().message.find("file"), std::string::npos) << removed.error().message;
}

TEST(RemoveAt, StopsAtItsLimitAndCanBeRepeated) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.file("tree/a"));
  for (int i = 0; i < 10; ++i) std::ofstream{folder.file("tree/a/" + std::to_string(i))};
  const Fd top{::open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const auto stopped = remove_at(top.get(), "tree", 5);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().error_number, E2BIG);
  EXPECT_TRUE(remove_at(top.get(), "tree", 11));
  EXPECT_TRUE(names_in(folder.path())->empty());
  EXPECT_EQ(remove_at(top.get(), "tree").error().error_number, ENOENT);
}

TEST(RemoveTree, AMountPointIsRefusedWithItsContent) {
  const tests::TemporaryFolder folder;
  fs::create_directories(folder.file("kept"));
  std::ofstream{folder.file("kept/file")} << "x";
  fs::create_directories(folder.file("tree/mount"));
  // In a namespace of its own, which ends with the thread.
  bool is_mounted = false;
  Result<> removed;
  std::thread{[&] {
    is_mounted = ::unshare(CLONE_FS | CLONE_NEWNS) == 0 &&
                 ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                 ::mount(folder.file("kept").c_str(), folder.file("tree/mount").c_str(), nullptr,
                         MS_BIND, nullptr) == 0;
    if (is_mounted) removed = remove_tree(folder.file("tree"));
  }}.join();
  if (!is_mounted) GTEST_SKIP() << "mounting needs root";
  EXPECT_FALSE(removed);
  EXPECT_TRUE(fs::exists(folder.file("kept/file")));
}

}  // namespace
}  // namespace berth
