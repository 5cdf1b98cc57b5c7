#include "files/tree_diff.hpp"

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace berth::files {
namespace {

namespace fs = std::filesystem;

// Layers as folders; `said` is the result as a list of words: "+/a", "~/b", "-/c".
class LayerDiffs : public testing::Test {
 protected:
  LayerDiffs() {
    fs::create_directories(path("upper"));
    fs::create_directories(path("lower"));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void write(const std::string& name, const std::string& text = "text") {
    fs::create_directories(fs::path{path(name)}.parent_path());
    std::ofstream{path(name)} << text;
  }
  bool white_out(const std::string& name) {
    fs::create_directories(fs::path{path(name)}.parent_path());
    return ::mknod(path(name).c_str(), S_IFCHR | 0600, makedev(0, 0)) == 0;
  }
  // Copies a file from the lower to the upper layer, with its time.
  void copy_up(const std::string& name) {
    fs::create_directories(fs::path{path("upper/" + name)}.parent_path());
    fs::copy_file(path("lower/" + name), path("upper/" + name));
    set_time_back(name);
  }
  void set_time_back(const std::string& name) {
    struct stat was{};
    ASSERT_EQ(::stat(path("lower/" + name).c_str(), &was), 0);
    const timespec times[] = {was.st_atim, was.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path("upper/" + name).c_str(), times, 0), 0);
  }
  bool mark(const std::string& name, const char* value) {
    return ::setxattr(path(name).c_str(), "user.k", value, 1, 0) == 0;
  }
  // On a file system without attributes there is nothing to test.
  bool make_opaque(const std::string& name, const char* attribute = "user.overlay.opaque") {
    fs::create_directories(path(name));
    return ::setxattr(path(name).c_str(), attribute, "y", 1, 0) == 0;
  }
  Fd open(const std::string& name) {
    return Fd{::open(path(name).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  }
  std::vector<std::string> said(DiffRequest request) {
    const Fd upper = open("upper");
    request.upper = upper.get();
    const auto diff = diff_layers(request);
    EXPECT_TRUE(diff) << diff.error().message;
    std::vector<std::string> out;
    if (!diff) return out;
    for (const LayerDifference& one : diff->differences) {
      constexpr const char* signs[] = {"+", "~", "-"};
      out.push_back(signs[static_cast<int>(one.change)] + one.path);
    }
    if (diff->truncated) out.emplace_back("...");
    return out;
  }
  std::vector<std::string> said(OverlayMarks marks = OverlayMarks::user) {
    DiffRequest request;
    request.marks = marks;
    request.lower.push_back(open("lower"));
    return said(std::move(request));
  }

  // All initial content is in the upper layer, as in a sandbox without layers.
  std::vector<std::string> said_since_birth(std::vector<BornWith> born_with) {
    DiffRequest request;
    request.birth = DiffRequest::Birth::in_upper;
    request.born_with = std::move(born_with);
    return said(std::move(request));
  }

  tests::TemporaryFolder folder_;
};
using List = std::vector<std::string>;

TEST_F(LayerDiffs, TellNewFromChangedAndFromUntouched) {
  write("lower/etc/old");
  write("lower/etc/kept");
  write("upper/etc/old", "another text");
  write("upper/etc/new");
  write("upper/opt/deep/file");
  copy_up("etc/kept");
  EXPECT_EQ(said(), (List{"+/etc/new", "~/etc/old", "+/opt", "+/opt/deep", "+/opt/deep/file"}));
}

TEST_F(LayerDiffs, TellContentThatChangedUnderItsOldTime) {
  const std::string large(300'000, 'x');  // more than one piece
  write("lower/large", large);
  write("lower/small", "one");
  write("lower/untouched", large);
  for (const char* name : {"large", "small", "untouched"}) copy_up(name);
  EXPECT_EQ(said(), List{});
  write("upper/large", large.substr(1) + "y");
  write("upper/small", "TWO");
  for (const char* name : {"large", "small"}) set_time_back(name);
  EXPECT_EQ(said(), (List{"~/large", "~/small"}));
}

TEST_F(LayerDiffs, TellWhatIsTooMuchToCompare) {
  write("lower/large", std::string(4096, 'x'));
  copy_up("large");
  DiffRequest request;
  request.lower.push_back(open("lower"));
  request.compared_bytes_max = 4095;
  EXPECT_EQ(said(std::move(request)), List{"~/large"});
}

TEST_F(LayerDiffs, TellModesAndOwnersOfFilesAndFolders) {
  for (const char* name : {"mode/f", "own/f", "kept/f"}) {
    write(std::string{"lower/"} + name);
    copy_up(name);
  }
  EXPECT_EQ(said(), List{});
  fs::permissions(path("upper/mode"), fs::perms{0700});
  fs::permissions(path("upper/mode/f"), fs::perms{0600});
  EXPECT_EQ(said(), (List{"~/mode", "~/mode/f"}));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path("upper/own").c_str(), 7, 0), 0);
  ASSERT_EQ(::chown(path("upper/own/f").c_str(), 0, 5), 0);
  EXPECT_EQ(said(), (List{"~/mode", "~/mode/f", "~/own", "~/own/f"}));
}

TEST_F(LayerDiffs, TellOwnersByTheirPlaceInTheRangeOfTheSandbox) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  constexpr uid_t first = 0x30000000;
  for (const char* name : {"kept/f", "given/f"}) {
    write(std::string{"lower/"} + name);
    copy_up(name);
  }
  for (const char* name : {"upper", "upper/kept", "upper/kept/f", "upper/given", "upper/given/f"}) {
    ASSERT_EQ(::chown(path(name).c_str(), first, first), 0);
  }
  EXPECT_EQ(said(), List{});
  // Giving away "/" does not hide that another file was given away.
  ASSERT_EQ(::chown(path("upper").c_str(), first + 5, first + 5), 0);
  ASSERT_EQ(::chown(path("upper/given/f").c_str(), first + 5, first + 5), 0);
  EXPECT_EQ(said(), List{"~/given/f"});
}

TEST_F(LayerDiffs, TellAttributesThatUsersHaveSet) {
  for (const char* name : {"d/f", "e/f"}) {
    write(std::string{"lower/"} + name);
    copy_up(name);
  }
  if (!mark("upper/d", "1")) GTEST_SKIP() << "the file system keeps no attributes of users";
  ASSERT_TRUE(mark("lower/d/f", "1") && mark("upper/d/f", "2"));
  ASSERT_TRUE(mark("lower/e", "1") && mark("upper/e", "1"));
  ASSERT_TRUE(mark("lower/e/f", "1"));
  set_time_back("d/f");
  EXPECT_EQ(said(), (List{"~/d", "~/d/f", "~/e/f"}));
}

TEST_F(LayerDiffs, SayThatAWhiteoutRemovesOnlyWhatIsThere) {
  write("lower/gone/inside");
  if (!white_out("upper/gone")) GTEST_SKIP() << "no whiteouts can be made here";
  ASSERT_TRUE(white_out("upper/never"));
  EXPECT_EQ(said(), List{"-/gone"});
}

TEST_F(LayerDiffs, SayWhatAnOpaqueFolderHides) {
  write("lower/d/hidden");
  write("lower/d/replaced", "was longer");
  if (!make_opaque("upper/d")) GTEST_SKIP() << "the file system keeps no attributes of users";
  write("upper/d/replaced");
  EXPECT_EQ(said(), (List{"-/d/hidden", "~/d/replaced"}));
}

TEST_F(LayerDiffs, BelieveNoMarkThatAnybodyInsideCouldHaveSet) {
  write("lower/d/there");
  if (!make_opaque("upper/d")) GTEST_SKIP() << "the file system keeps no attributes of users";
  const List only_its_attribute = {"~/d"};
  EXPECT_EQ(said(OverlayMarks::trusted), only_its_attribute);
  EXPECT_EQ(said(OverlayMarks::none), only_its_attribute);
  EXPECT_EQ(said(OverlayMarks::user), List{"-/d/there"});
  ASSERT_EQ(::removexattr(path("upper/d").c_str(), "user.overlay.opaque"), 0);
  ASSERT_TRUE(make_opaque("upper/d", "user.overlay.overlay.opaque"));
  EXPECT_EQ(said(OverlayMarks::user), only_its_attribute) << "as the kernel keeps one of theirs";
}

TEST_F(LayerDiffs, LookIntoALowerFolderThatAnybodyCouldHaveMarked) {
  write("lower/d/f");
  fs::create_directories(path("middle"));
  if (!make_opaque("middle/d")) GTEST_SKIP() << "the file system keeps no attributes of users";
  ASSERT_TRUE(make_opaque("upper/d"));
  write("upper/d/f", "changed");
  const auto look = [&](OverlayMarks marks) {
    DiffRequest request;
    request.marks = marks;
    request.lower.push_back(open("middle"));
    request.lower.push_back(open("lower"));
    return said(std::move(request));
  };
  EXPECT_EQ(look(OverlayMarks::trusted), List{"~/d/f"});
  EXPECT_EQ(look(OverlayMarks::user), List{"+/d/f"});
}

TEST_F(LayerDiffs, LookThroughSeveralLayersAndStopAtAWhiteoutInOne) {
  write("lower/a");
  write("lower/b");
  fs::create_directories(path("middle"));
  if (!white_out("middle/b")) GTEST_SKIP() << "no whiteouts can be made here";
  write("upper/a", "changed");
  write("upper/b", "new again");
  DiffRequest request;
  request.lower.push_back(open("middle"));
  request.lower.push_back(open("lower"));
  EXPECT_EQ(said(std::move(request)), (List{"~/a", "+/b"}));
}

TEST_F(LayerDiffs, ComparesWhatASandboxIsBornWithByItsText) {
  write("upper/etc/passwd", "root\nme\n");
  write("upper/etc/hosts", "localhost\n");
  fs::create_symlink("usr/bin", path("upper/bin"));
  fs::create_directories(path("upper/workspace"));
  DiffRequest request;
  request.birth = DiffRequest::Birth::in_upper;
  request.born_with = {{.path = "etc"},
                       {.path = "bin", .entry = LayerEntry::symbolic_link, .text = "usr/bin"},
                       {.path = "etc/passwd", .entry = LayerEntry::file, .text = "root\n"},
                       {.path = "etc/hosts", .entry = LayerEntry::file, .text = "localhost\n"},
                       {.path = "home"}};
  request.own = {"workspace"};
  EXPECT_EQ(said(std::move(request)), (List{"~/etc/passwd", "-/home"}));
}

TEST_F(LayerDiffs, TellTheModeOfAFolderThatASandboxIsBornWith) {
  fs::create_directories(path("upper/opt"));
  fs::create_directories(path("upper/root"));
  const auto look = [&] {
    DiffRequest request;
    request.birth = DiffRequest::Birth::in_upper;
    request.born_with = {{.path = "opt", .mode = 0755}, {.path = "root", .mode = 0700}};
    return said(std::move(request));
  };
  fs::permissions(path("upper/opt"), fs::perms{0755});
  fs::permissions(path("upper/root"), fs::perms{0700});
  EXPECT_EQ(look(), List{});
  fs::permissions(path("upper/root"), fs::perms{0777});
  EXPECT_EQ(look(), List{"~/root"});
}

TEST_F(LayerDiffs, TellALinkInPlaceOfABornFolderAndOneThatPointsElsewhere) {
  const std::vector<BornWith> born = {
      {.path = "bin", .entry = LayerEntry::symbolic_link, .text = "usr/bin"},
      {.path = "lib", .entry = LayerEntry::symbolic_link, .text = "usr/lib"},
      {.path = "opt", .mode = 0755},
      {.path = "sbin", .entry = LayerEntry::symbolic_link, .text = "usr/sbin"},
      {.path = "srv"}};
  fs::create_symlink("var/evil", path("upper/bin"));
  fs::create_symlink("usr/lib", path("upper/lib"));
  fs::create_symlink("var/evil", path("upper/opt"));
  fs::create_directories(path("upper/sbin"));
  fs::create_symlink("var/evil", path("upper/srv"));
  EXPECT_EQ(said_since_birth(born), (List{"~/bin", "~/opt", "~/sbin", "~/srv"}));
}

TEST_F(LayerDiffs, TellModeOwnerAndAttributesOfABornFile) {
  const std::vector<BornWith> born = {
      {.path = "group", .entry = LayerEntry::file, .text = "text", .mode = 0644},
      {.path = "hosts", .entry = LayerEntry::file, .text = "text", .mode = 0644},
      {.path = "opt", .mode = 0755},
      {.path = "passwd", .entry = LayerEntry::file, .text = "text", .mode = 0644}};
  for (const char* name : {"upper/group", "upper/hosts", "upper/passwd"}) {
    write(name);
    fs::permissions(path(name), fs::perms{0644});
  }
  fs::create_directories(path("upper/opt"));
  fs::permissions(path("upper/opt"), fs::perms{0755});
  EXPECT_EQ(said_since_birth(born), List{});
  fs::permissions(path("upper/passwd"), fs::perms{0666});
  EXPECT_EQ(said_since_birth(born), List{"~/passwd"});
  if (!mark("upper/hosts", "1")) GTEST_SKIP() << "the file system keeps no attributes of users";
  ASSERT_TRUE(mark("upper/opt", "1"));
  EXPECT_EQ(said_since_birth(born), (List{"~/hosts", "~/opt", "~/passwd"}));
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chown(path("upper/group").c_str(), 1000, 0), 0);
  // Giving away "/" as well neither hides these changes nor adds others.
  ASSERT_EQ(::chown(path("upper").c_str(), 1000, 0), 0);
  EXPECT_EQ(said_since_birth(born), (List{"~/group", "~/hosts", "~/opt", "~/passwd"}));
}

TEST_F(LayerDiffs, StopAtTheirLimitAndSaySo) {
  for (int i = 0; i < 8; ++i) write("upper/f" + std::to_string(i));
  DiffRequest request;
  request.differences_max = 3;
  EXPECT_EQ(said(std::move(request)), (List{"+/f0", "+/f1", "+/f2", "..."}));
  std::string deep = "upper";
  for (int i = 0; i < 6; ++i) deep += "/d";
  fs::create_directories(path(deep));
  DiffRequest shallow;
  shallow.depth_max = 3;
  const List told = said(std::move(shallow));
  EXPECT_EQ(told.back(), "...");
  EXPECT_EQ(std::ranges::count(told, "+/f7"), 1) << "a folder that is too deep hides the rest";
}

TEST_F(LayerDiffs, FollowNoLink) {
  write("outside/secret");
  fs::create_directory_symlink(path("outside"), path("upper/link"));
  EXPECT_EQ(said(), List{"+/link"});
}

}  // namespace
}  // namespace berth::files
