#include "workspaces/confined.hpp"

#include "support/full_disk.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

namespace berth::workspaces {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void put(const std::string& path, std::string_view text) {
  std::ofstream{path, std::ios::binary} << text;
}

std::string content(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

// Returns the text in pieces of a few bytes.
ByteSource pieces(std::string text) {
  return [text = std::move(text), at = std::size_t{0}]() mutable -> Result<std::string_view> {
    const std::string_view piece = std::string_view{text}.substr(at, 7);
    at += piece.size();
    return piece;
  };
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator{folder}) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// A tree, and next to it files that must be unreachable from inside.
class ConfinedTest : public testing::Test {
 protected:
  ConfinedTest() {
    fs::create_directory(root_);
    fs::create_directory(outside_);
    put(outside_ + "/secret", "secret");
  }

  Confined open(Limits limits = {}, Mounts mounts = Mounts::refused) const {
    return Confined{Fd{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)}, mounts, limits};
  }
  std::string in(const std::string& name) const { return root_ + "/" + name; }

  Result<std::string> read(const std::string& path, Limits limits = {}) const {
    std::string text;
    BERTH_TRY(const FileView view, open(limits).read_file(path, [&](std::string_view piece) {
      text += piece;
      return Result<>{};
    }));
    EXPECT_EQ(view.bytes, text.size());
    return text;
  }
  Result<std::uint64_t> write(const std::string& path, const std::string& text) const {
    return open().write_file(path, pieces(text), {});
  }
  // Checks the result of every way to use the path.
  void expect_refused_everywhere(const std::string& path, std::string_view rule) const {
    const auto check = [&](std::string_view call, const auto& result) {
      ASSERT_FALSE(result.has_value()) << call << " " << path;
      EXPECT_EQ(result.error().code, Errc::path_refused) << call << " " << result.error().message;
      EXPECT_THAT(result.error().message, HasSubstr(std::string{rule})) << call;
    };
    check("read", read(path));
    check("write", write(path, "x"));
    check("list", open().list(path));
    check("make_directory", open().make_directory(path + "/deeper", {}));
    check("remove", open().remove(path + "/secret"));
    EXPECT_EQ(content(outside_ + "/secret"), "secret");
    EXPECT_THAT(names_in(outside_), ElementsAre("secret"));
  }

  const tests::TemporaryFolder folder_;
  const std::string root_ = folder_.file("root");
  const std::string outside_ = folder_.file("outside");
};

TEST_F(ConfinedTest, AFileIsReadAsItWasWritten) {
  const std::string text(300'000, 'q');
  ASSERT_EQ(write("a/b/c.txt", text), text.size());
  EXPECT_EQ(read("a/b/c.txt"), text);
  EXPECT_EQ(read("./a//b/./c.txt"), text);
  EXPECT_THAT(names_in(in("a/b")), ElementsAre("c.txt"));
}

TEST_F(ConfinedTest, APartOfAFileIsReadFromItsOffset) {
  ASSERT_TRUE(write("a", "0123456789"));
  const Result<ReadableFile> file = open().open_file("a");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_EQ(file->read_part(0, 10), "0123456789");
  EXPECT_EQ(file->read_part(3, 4), "3456");
  EXPECT_EQ(file->read_part(10, 0), "");
  EXPECT_EQ(file->read_part(8, 3).error().code, Errc::conflict) << "past what was announced";
  put(in("a"), "other");
  EXPECT_EQ(file->read_part(0, 5).error().code, Errc::conflict) << "it has changed since";
}

TEST_F(ConfinedTest, AnEmptyFileIsAFile) {
  ASSERT_EQ(write("empty", ""), 0U);
  EXPECT_EQ(read("empty"), "");
}

TEST_F(ConfinedTest, WhatIsNotThereIsNotFound) {
  put(in("file"), "x");
  EXPECT_EQ(read("nothing").error().code, Errc::file_not_found);
  EXPECT_EQ(read("file/below").error().code, Errc::file_not_found);
  EXPECT_EQ(open().list("nothing").error().code, Errc::file_not_found);
  EXPECT_EQ(open().stat("nothing").error().code, Errc::file_not_found);
  EXPECT_EQ(open().remove("nothing").error().code, Errc::file_not_found);
}

TEST_F(ConfinedTest, ParentAndAbsolutePathsAreRefused) {
  expect_refused_everywhere("../outside", "holds '..'");
  expect_refused_everywhere("a/../../outside", "holds '..'");
  expect_refused_everywhere(outside_, "is absolute");
  EXPECT_EQ(read(std::string{"a\0b", 3}).error().code, Errc::path_refused);
  EXPECT_EQ(read(std::string(256, 'n')).error().code, Errc::path_refused);
  EXPECT_EQ(read(std::string(5000, 'n')).error().code, Errc::path_refused);
}

TEST_F(ConfinedTest, SymbolicLinksAreNotFollowed) {
  fs::create_symlink(outside_, in("absolute"));
  fs::create_symlink("../outside", in("relative"));
  fs::create_symlink("inner", in("harmless"));
  fs::create_directory(in("inner"));
  expect_refused_everywhere("absolute/secret", "symbolic link");
  expect_refused_everywhere("relative/secret", "symbolic link");
  EXPECT_EQ(read("harmless/file").error().code, Errc::path_refused);

  fs::create_symlink(outside_ + "/secret", in("file"));
  EXPECT_EQ(read("file").error().code, Errc::path_refused);
  EXPECT_EQ(write("file", "x").error().code, Errc::path_refused);
  EXPECT_EQ(content(outside_ + "/secret"), "secret");
}

TEST_F(ConfinedTest, MagicLinksOfProcLeadNowhere) {
  const Confined host{Fd{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)}, Mounts::entered};
  for (const std::string path : {"proc/self/root/etc/passwd", "proc/self/cwd", "proc/self/fd/0",
                                 "proc/1/environ", "proc/version", "sys/kernel/uevent_seqnum"}) {
    const auto file = host.open_file(path);
    ASSERT_FALSE(file.has_value()) << path;
    EXPECT_EQ(file.error().code, Errc::path_refused) << file.error().message;
  }
  EXPECT_EQ(host.list("proc").error().code, Errc::path_refused);
  EXPECT_EQ(host.make_directory("sys/fs/cgroup/berth-test", {}).error().code, Errc::path_refused);
}

TEST_F(ConfinedTest, AnotherMountIsEnteredOnlyWhereMountsBelongToTheTree) {
  const Fd host{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  struct stat top{};
  struct stat shm{};
  if (::stat("/", &top) != 0 || ::stat("/dev/shm", &shm) != 0 || top.st_dev == shm.st_dev) {
    GTEST_SKIP() << "/dev/shm is no mount of its own here";
  }
  const Confined narrow{Fd{::dup(host.get())}, Mounts::refused};
  EXPECT_EQ(narrow.list("dev/shm").error().code, Errc::path_refused);
  const Confined wide{Fd{::dup(host.get())}, Mounts::entered};
  EXPECT_TRUE(wide.list("dev/shm").has_value());
}

TEST_F(ConfinedTest, OnlyRegularFilesLeave) {
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  const Fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", in("socket").c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  fs::create_directory(in("folder"));
  EXPECT_THAT(read("pipe").error().message, HasSubstr("'pipe': is a pipe"));
  EXPECT_THAT(read("socket").error().message, HasSubstr("is a socket"));
  EXPECT_THAT(read("folder").error().message, HasSubstr("is a directory"));
  for (const std::string name : {"pipe", "socket", "folder"}) {
    EXPECT_EQ(read(name).error().code, Errc::path_refused);
    EXPECT_EQ(write(name, "x").error().code, Errc::path_refused);
  }
}

TEST_F(ConfinedTest, ADeviceIsNeitherReadNorWritten) {
  if (::mknod(in("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0) {
    GTEST_SKIP() << "devices cannot be made here";
  }
  EXPECT_THAT(read("null").error().message, HasSubstr("is a device"));
  EXPECT_EQ(write("null", "x").error().code, Errc::path_refused);
  EXPECT_TRUE(open().remove("null").has_value());
}

TEST_F(ConfinedTest, AFileWithASecondNameDoesNotLeaveAndIsNotWrittenThrough) {
  fs::create_hard_link(outside_ + "/secret", in("linked"));
  const auto text = read("linked");
  EXPECT_EQ(text.error().code, Errc::path_refused);
  EXPECT_THAT(text.error().message, HasSubstr("has 2 names"));
  ASSERT_TRUE(write("linked", "new").has_value());
  EXPECT_EQ(content(outside_ + "/secret"), "secret");
  EXPECT_EQ(read("linked"), "new");
}

TEST_F(ConfinedTest, AFileWithASecondNameLeavesWhereAllNamesLieInTheTree) {
  put(in("one"), "text");
  fs::create_hard_link(in("one"), in("two"));
  const Confined whole{Fd{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)},
                       Mounts::refused,
                       {},
                       {},
                       HardLinks::taken};
  for (const std::string name : {"one", "two"}) {
    const Result<ReadableFile> file = whole.open_file(name);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_EQ(file->read_part(0, 4), "text");
  }
}

TEST_F(ConfinedTest, AFileOfHolesDoesNotLeave) {
  put(in("sparse"), "x");
  fs::resize_file(in("sparse"), 1ULL << 40);
  const auto text = read("sparse");
  EXPECT_EQ(text.error().code, Errc::path_refused);
  EXPECT_THAT(text.error().message, HasSubstr("is sparse"));
}

TEST_F(ConfinedTest, AFileOverTheLimitIsNeitherReadNorKept) {
  put(in("large"), "123456789");
  EXPECT_EQ(read("large", {.file_bytes_max = 8}).error().code, Errc::path_refused);
  const auto written = open({.file_bytes_max = 8}).write_file("new", pieces("123456789"), {});
  EXPECT_EQ(written.error().code, Errc::body_too_large);
  EXPECT_THAT(names_in(root_), ElementsAre("large"));
}

TEST_F(ConfinedTest, AFileThatGrowsWhileItIsReadIsReadUpToTheSizeItHad) {
  put(in("log"), std::string(1'000'000, 'a'));
  std::string taken;
  const auto view = open().read_file("log", [&](std::string_view piece) {
    taken += piece;
    std::ofstream{in("log"), std::ios::app} << "more";
    return Result<>{};
  });
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_EQ(view->bytes, 1'000'000U);
  EXPECT_EQ(taken, std::string(1'000'000, 'a'));
}

TEST_F(ConfinedTest, APartOfAFileThatGrowsIsRead) {
  put(in("log"), "0123456789");
  const Result<ReadableFile> file = open().open_file("log");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  std::ofstream{in("log"), std::ios::app} << "more";
  EXPECT_EQ(file->read_part(0, 4), "0123");
  EXPECT_EQ(file->bytes(), 10U) << "what was announced stays";
}

TEST_F(ConfinedTest, AFileThatShrinksWhileItIsReadIsAConflict) {
  put(in("log"), std::string(1'000'000, 'a'));
  const auto view = open().read_file("log", [&](std::string_view) {
    fs::resize_file(in("log"), 10);
    return Result<>{};
  });
  EXPECT_EQ(view.error().code, Errc::conflict);
}

TEST_F(ConfinedTest, AFileThatIsOverwrittenWhileItIsReadIsAConflict) {
  put(in("file"), std::string(1000, 'a'));
  const timespec then{.tv_sec = 1'000'000'000, .tv_nsec = 0};
  const timespec times[] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, in("file").c_str(), times, 0), 0);
  const auto view = open().read_file("file", [&](std::string_view) {
    const Fd file{::open(in("file").c_str(), O_WRONLY | O_CLOEXEC)};
    EXPECT_EQ(::pwrite(file.get(), "b", 1, 999), 1);
    return Result<>{};
  });
  EXPECT_EQ(view.error().code, Errc::conflict);
}

TEST_F(ConfinedTest, ASourceThatFailsLeavesTheOldFile) {
  put(in("kept"), "old");
  const ByteSource broken = [calls = 0]() mutable -> Result<std::string_view> {
    if (++calls == 1) return "half";
    return fail(Errc::cancelled, "the client left");
  };
  EXPECT_EQ(open().write_file("kept", broken, {}).error().code, Errc::cancelled);
  EXPECT_EQ(content(in("kept")), "old");
  EXPECT_THAT(names_in(root_), ElementsAre("kept"));
}

TEST_F(ConfinedTest, AFullDiskLeavesTheOldFile) {
  put(in("kept"), "old");
  Result<std::uint64_t> written;
  {
    const tests::FullDisk full;
    written = write("kept", "new text");
  }
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().code, Errc::store_full);
  EXPECT_EQ(content(in("kept")), "old");
  EXPECT_THAT(names_in(root_), ElementsAre("kept"));
}

TEST_F(ConfinedTest, WhatIsMadeHasTheModeAndTheOwner) {
  Look look{.mode = 06750};
  if (::geteuid() == 0) look.owner = Owner{.uid = 12345, .gid = 23456};
  ASSERT_TRUE(open().write_file("a/b/tool", pieces("#!"), look).has_value());
  struct stat status{};
  ASSERT_EQ(::stat(in("a/b/tool").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0750U) << "set-id bits are not for guests to set";
  if (::geteuid() != 0) return;
  for (const std::string name : {"a", "a/b", "a/b/tool"}) {
    ASSERT_EQ(::stat(in(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 12345U) << name;
    EXPECT_EQ(status.st_gid, 23456U) << name;
  }
}

TEST_F(ConfinedTest, AFileHasTheTimeThatItWasGiven) {
  const timespec then = timespec_of(Time{1'000'000'000'123});
  ASSERT_TRUE(open().write_file("dated", pieces("x"), {.modified = then}).has_value());
  const Result<FileView> view = open().stat("dated");
  ASSERT_TRUE(view.has_value()) << view.error().message;
  EXPECT_EQ(time_of(view->modified), Time{1'000'000'000'123});
  EXPECT_EQ(time_of(timespec_of(Time{-1})), Time{-1}) << "before 1970";
}

TEST_F(ConfinedTest, AListingDescribesLinksAndDoesNotFollowThem) {
  put(in("file"), "12345");
  fs::create_directory(in("folder"));
  fs::create_symlink("/etc/passwd", in("link"));
  const auto folder = open().list("");
  ASSERT_TRUE(folder.has_value());
  ASSERT_EQ(folder->entries.size(), 3U);
  EXPECT_EQ(folder->entries[0].name, "file");
  EXPECT_EQ(folder->entries[0].bytes, 5U);
  EXPECT_EQ(folder->entries[1].type, FileType::directory);
  EXPECT_EQ(folder->entries[2].type, FileType::symbolic_link);
  EXPECT_EQ(folder->entries[2].target, "/etc/passwd");
  EXPECT_EQ(folder->extent, FolderView::Extent::whole);
  const auto link = open().stat("link");
  ASSERT_TRUE(link.has_value());
  EXPECT_EQ(link->target, "/etc/passwd");
}

TEST_F(ConfinedTest, AListingThatIsTooLongSaysThatItWasCut) {
  for (int i = 0; i < 30; ++i) put(in(std::to_string(i)), "");
  const auto folder = open({.listed_max = 20}).list("");
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(folder->entries.size(), 20U);
  EXPECT_EQ(folder->extent, FolderView::Extent::cut);
}

TEST_F(ConfinedTest, OddNamesAreKeptToTheByteAndShownEscaped) {
  const std::vector<std::string> odd = {"new\nline",  "bad\xff\xfe",         "back\\slash", " ",
                                        "esc\x1b[2J", std::string(255, 'n'), "\xc3\xa4"};
  for (const std::string& name : odd) ASSERT_TRUE(write(name, name).has_value()) << name;
  for (const std::string& name : odd) EXPECT_EQ(read(name), name);
  EXPECT_EQ(open().list(".")->entries.size(), odd.size());
  EXPECT_EQ(escaped(odd[0]), "new\\x0aline");
  EXPECT_EQ(escaped(odd[1]), "bad\\xff\\xfe");
  EXPECT_EQ(escaped(odd[2]), "back\\\\slash");
  EXPECT_EQ(escaped(odd[4]), "esc\\x1b[2J");
  EXPECT_EQ(escaped(odd[6]), odd[6]);
  EXPECT_EQ(escaped("\xc2\x9b"), "\\xc2\\x9b") << "a terminal takes it for an escape";
  EXPECT_EQ(escaped("a\u200bb\u202ec"), "a\\xe2\\x80\\x8bb\\xe2\\x80\\xaec") << "nobody sees them";
  EXPECT_EQ(unescaped(escaped("a\u200bb")), "a\u200bb");
  for (const std::string& name : odd) EXPECT_EQ(unescaped(escaped(name)), name);
  EXPECT_EQ(unescaped("\\\\x0a \\q \\x0 \\"), "\\x0a \\q \\x0 \\") << "nobody writes these so";
  EXPECT_THAT(read("bad\xff").error().message, HasSubstr("bad\\xff"));
}

TEST_F(ConfinedTest, MakingADirectoryTwiceKeepsTheFirst) {
  ASSERT_TRUE(open().make_directory("a/b", {.mode = 0700}).has_value());
  ASSERT_TRUE(open().make_directory("a/b", {.mode = 0755}).has_value());
  EXPECT_EQ(open().stat("a/b")->mode, 0700U);
  put(in("file"), "x");
  EXPECT_EQ(open().make_directory("file", {}).error().code, Errc::path_refused);
  EXPECT_EQ(open().make_directory("file/below", {}).error().code, Errc::path_refused);
}

TEST_F(ConfinedTest, RemovingTakesLinksAndLeavesWhatTheyPointAt) {
  fs::create_directories(in("tree/deep/er"));
  put(in("tree/deep/file"), "x");
  fs::create_symlink(outside_, in("tree/deep/out"));
  fs::create_symlink(outside_, in("link"));
  fs::permissions(in("tree/deep"), fs::perms::none);
  ASSERT_TRUE(open().remove("link").has_value());
  ASSERT_TRUE(open().remove("tree").has_value());
  EXPECT_THAT(names_in(root_), IsEmpty());
  EXPECT_THAT(names_in(outside_), ElementsAre("secret"));
  EXPECT_EQ(open().remove("").error().code, Errc::path_refused);
}

TEST_F(ConfinedTest, ATreeDeeperThanAnyPathIsRemoved) {
  Fd at{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  const std::string name = "nest-egg";
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0) << i;
    at = Fd{::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    ASSERT_TRUE(at) << i;
  }
  EXPECT_EQ(open({.removed_max = 100}).remove(name).error().code, Errc::path_refused);
  ASSERT_TRUE(open().remove(name).has_value());
  EXPECT_THAT(names_in(root_), IsEmpty());
}

TEST_F(ConfinedTest, WhatIsDoneAsAUserIsDoneWithThatUsersRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root acts as others";
  const Owner user{.uid = 4321, .gid = 5432};
  fs::create_directory(in("theirs"));
  ASSERT_EQ(::chown(in("theirs").c_str(), user.uid, user.gid), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  put(in("closed"), "roots own");
  fs::permissions(in("closed"), fs::perms::owner_read);
  const Confined theirs{
      Fd{::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)}, Mounts::refused, {}, user};
  EXPECT_EQ(theirs.open_file("closed").error().code, Errc::path_refused);
  EXPECT_EQ(theirs.remove("closed").error().code, Errc::path_refused);
  EXPECT_EQ(theirs.write_file("new", pieces("x"), {}).error().code, Errc::path_refused);
  ASSERT_TRUE(theirs.write_file("theirs/new", pieces("x"), {}).has_value());
  struct stat status{};
  ASSERT_EQ(::stat(in("theirs/new").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user.uid);
  EXPECT_EQ(status.st_gid, user.gid);
  // Afterwards the process has its own ids again, even if the call failed.
  EXPECT_EQ(read("closed"), "roots own");
  EXPECT_TRUE(write("new", "x").has_value());
}

// Swaps the two as often as possible while the reads run.
class Swapping {
 public:
  Swapping(std::string a, std::string b)
      : thread_([this, a = std::move(a), b = std::move(b)] {
          while (!stop_) {
            ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
            ++swaps_;
          }
        }) {}
  ~Swapping() {
    stop_ = true;
    thread_.join();
  }
  int swaps() const { return swaps_; }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> swaps_ = 0;
  std::thread thread_;
};

TEST_F(ConfinedTest, AFileThatBecomesALinkMeanwhileIsReadOrRefused) {
  put(in("file"), "inside");
  fs::create_symlink(outside_ + "/secret", in("other"));
  const Swapping swapping{in("file"), in("other")};
  int reads = 0;
  int refusals = 0;
  for (int i = 0; i < 200'000 && (i < 2000 || reads == 0 || refusals == 0); ++i) {
    const auto text = read("file");
    if (text) {
      ASSERT_EQ(*text, "inside");
      ++reads;
    } else {
      // A rename changes the ctime, which is a conflict in the middle of a read.
      ASSERT_TRUE(text.error().code == Errc::path_refused || text.error().code == Errc::conflict)
          << text.error().message;
      ++refusals;
    }
  }
  EXPECT_GT(reads, 0);
  EXPECT_GT(refusals, 0);
}

TEST_F(ConfinedTest, AFolderThatBecomesALinkMeanwhileNeverLetsAWriteOut) {
  fs::create_directory(in("folder"));
  fs::create_symlink(outside_, in("other"));
  const Swapping swapping{in("folder"), in("other")};
  for (int i = 0; i < 1000; ++i) {
    static_cast<void>(write("folder/new/planted", "x"));
    static_cast<void>(open().remove("folder/secret"));
    static_cast<void>(open().remove("folder/new"));
  }
  EXPECT_THAT(names_in(outside_), ElementsAre("secret"));
}

}  // namespace
}  // namespace berth::workspaces
