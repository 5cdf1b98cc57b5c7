#include "snapshots/checkout.hpp"

#include "snapshots/folder/tree_name.hpp"
#include "snapshots/git/pack_writer.hpp"
#include "snapshots/git/tree_builder.hpp"
#include "snapshots/snapshots_fixture.hpp"

namespace berth::snapshots {
namespace {

class CheckoutTest : public SnapshotsTest {
 protected:
  struct Raw {
    std::string mode;
    std::string name;
    ObjectId id;
  };
  // A tree as no honest git writes it.
  ObjectId raw_tree(PackWriter& pack, const std::vector<Raw>& entries) const {
    std::string content;
    for (const Raw& entry : entries) {
      content += entry.mode + " " + entry.name;
      content += '\0';
      content += entry.id.raw();
    }
    return *pack.add(ObjectType::tree, content);
  }
  std::vector<std::string> names_at_home() const { return *names_in(home()); }
};

TEST_F(CheckoutTest, WritesExactlyWhatTheSnapshotHas) {
  write("a/b/c", "text");
  write("run", "#!/bin/sh\n");
  ::chmod((folder() + "/run").c_str(), 0755);
  write("empty", "");
  write("large", std::string(3 << 20, '\0') + "end");
  ASSERT_EQ(::symlink("a/b", (folder() + "/link").c_str()), 0);
  const Snapshot taken = take();
  const auto done = check_out(repository(), taken.commit, home() + "/out");
  SNAPSHOT_OK(done);
  EXPECT_EQ(done->files, 5U);
  EXPECT_EQ(take_of(home() + "/out").tree, taken.tree);
  struct stat status{};
  ASSERT_EQ(::lstat((home() + "/out/run").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755U);
  EXPECT_EQ(std::filesystem::read_symlink(home() + "/out/link"), "a/b");
}

TEST_F(CheckoutTest, FolderThatExistsIsNotTouched) {
  write("a", "1");
  std::filesystem::create_directory(home() + "/out");
  const auto done = check_out(repository(), take().commit, home() + "/out");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::conflict);
  EXPECT_EQ(names_at_home(), (std::vector<std::string>{"folder", "out", "repository"}));
}

TEST_F(CheckoutTest, UnknownSnapshotIsNotFound) {
  const auto done = check_out(repository(), ObjectId{}, home() + "/out");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::snapshot_not_found);
}

TEST_F(CheckoutTest, HostileNamesAreRefusedBeforeAnythingIsWritten) {
  auto pack = PackWriter::in(repository());
  SNAPSHOT_OK(pack);
  const ObjectId blob = *pack->add(ObjectType::blob, "x");
  const ObjectId link = *pack->add(ObjectType::blob, "/tmp");
  std::vector<ObjectId> trees;
  for (const std::string& name :
       {std::string{".git"}, std::string{".GIT"}, std::string{".Git "}, std::string{"git~1"},
        std::string{".git::$INDEX_ALLOCATION"}, std::string{".g\u200cit"}, std::string{".."},
        std::string{"."}, std::string{"../x"}, std::string{"/x"}, std::string{"new\nline"},
        std::string{"\x1b[2J"}, std::string{"a\\.git"}, std::string(300, 'n')}) {
    trees.push_back(raw_tree(*pack, {{"100644", name, blob}}));
  }
  // A link, and a file that goes through it.
  const ObjectId inner = raw_tree(*pack, {{"100644", "x", blob}});
  trees.push_back(raw_tree(*pack, {{"120000", "d", link}, {"40000", "d", inner}}));
  trees.push_back(raw_tree(*pack, {{"100644", "d", blob}, {"100644", "d", blob}}));
  ObjectId deep = inner;
  for (int i = 0; i < 300; ++i) deep = raw_tree(*pack, {{"40000", "d", deep}});
  trees.push_back(deep);
  SNAPSHOT_OK(pack->finish());
  for (const ObjectId& tree : trees) {
    const auto done = check_out(repository(), tree, home() + "/out");
    ASSERT_FALSE(done) << *repository().output({.arguments = {"ls-tree", tree.hex()}});
    EXPECT_EQ(done.error().code, Errc::path_refused) << done.error().message;
    EXPECT_EQ(names_at_home(), (std::vector<std::string>{"folder", "repository"}));
  }
}

// Git reads a mode that it does not know as the nearest one that it does.
TEST_F(CheckoutTest, DevicesAndSetIdBitsOfATreeHaveNoEffect) {
  auto pack = PackWriter::in(repository());
  SNAPSHOT_OK(pack);
  const ObjectId blob = *pack->add(ObjectType::blob, "x");
  const ObjectId tree = raw_tree(*pack, {{"20000", "character", blob},
                                         {"60000", "device", blob},
                                         {"10000", "pipe", blob},
                                         {"106755", "setid", blob},
                                         {"140000", "socket", blob}});
  SNAPSHOT_OK(pack->finish());
  const auto done = check_out(repository(), tree, home() + "/out");
  if (!done) return;
  for (const std::string& name : *names_in(home() + "/out")) {
    struct stat status{};
    ASSERT_EQ(::lstat((home() + "/out/" + name).c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode) || S_ISDIR(status.st_mode)) << name;
    EXPECT_EQ(status.st_mode & (S_ISUID | S_ISGID | S_ISVTX), 0U) << name;
  }
}

TEST_F(CheckoutTest, LimitsHoldAndLeaveNothing) {
  write("a", std::string(10'000, 'x'));
  write("b", "1");
  const Snapshot taken = take();
  for (const CheckoutLimits& limits :
       {CheckoutLimits{.files_max = 1}, CheckoutLimits{.bytes_max = 5000}}) {
    const auto done = check_out(repository(), taken.commit, home() + "/out", limits);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::workspace_too_large);
  }
  EXPECT_EQ(names_at_home(), (std::vector<std::string>{"folder", "repository"}));
}

TEST_F(CheckoutTest, NestedRepositoriesAreEmptyFolders) {
  write("sub/file", "1");
  git(folder() + "/sub", "init -q");
  git(folder() + "/sub", "add file");
  git(folder() + "/sub", "commit -qm one");
  write("z", "1");
  const auto done = check_out(repository(), take().commit, home() + "/out");
  SNAPSHOT_OK(done);
  EXPECT_EQ(done->nested, 1U);
  EXPECT_TRUE(std::filesystem::is_empty(home() + "/out/sub"));
}

TEST(TreeNameTest, OrdinaryNamesAreAccepted) {
  for (const char* name : {".gitignore", ".github", "git", "..a", "a b", "caf\xe9", ".git-x", "a:b",
                           "git~10", ".gitmodules", "a\\b"}) {
    EXPECT_EQ(problem_of_name(name), "") << name;
  }
}

}  // namespace
}  // namespace berth::snapshots
