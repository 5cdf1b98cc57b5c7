#include "snapshots/changes.hpp"

#include "snapshots/snapshots_fixture.hpp"

namespace berth::snapshots {
namespace {

class ChangesTest : public SnapshotsTest {
 protected:
  void SetUp() override {
    SnapshotsTest::SetUp();
    write("kept", "same\n");
    write("text", "one\ntwo\nthree\n");
    write("gone", "1\n2\n");
    write("image", std::string("\0\1\2", 3));
    write("script", "x\n");
    write("kind", "file\n");
    base_ = take().commit;
    write("text", "one\nTWO\nthree\nfour\n");
    std::filesystem::remove(folder() + "/gone");
    write("image", std::string("\0\1\2\3\4", 5));
    ::chmod((folder() + "/script").c_str(), 0755);
    std::filesystem::remove(folder() + "/kind");
    ASSERT_EQ(::symlink("text", (folder() + "/kind").c_str()), 0);
    write("new\xff", "n\n");
    result_ = take().commit;
  }
  ObjectId base_;
  ObjectId result_;
};

TEST_F(ChangesTest, ListHasKindsModesSizesAndLines) {
  const auto changes = list_changes(repository(), base_, result_);
  SNAPSHOT_OK(changes);
  std::map<std::string, Change> by_path;
  for (const Change& change : *changes) by_path[change.path] = change;
  ASSERT_EQ(by_path.size(), 6U);
  EXPECT_EQ(by_path["text"].lines_added, 2U);
  EXPECT_EQ(by_path["text"].lines_removed, 1U);
  EXPECT_EQ(by_path["gone"].kind, ChangeKind::deleted);
  EXPECT_EQ(by_path["gone"].old_bytes, 4U);
  EXPECT_TRUE(by_path["image"].binary);
  EXPECT_EQ(by_path["image"].old_bytes, 3U);
  EXPECT_EQ(by_path["image"].new_bytes, 5U);
  EXPECT_EQ(by_path["script"].old_mode, GitMode::file);
  EXPECT_EQ(by_path["script"].new_mode, GitMode::program);
  EXPECT_EQ(by_path["kind"].kind, ChangeKind::type_changed);
  EXPECT_EQ(by_path["new\xff"].kind, ChangeKind::added);
}

TEST_F(ChangesTest, DiffOfOneFileIsUnifiedAndCutAtItsLimit) {
  const auto diff = diff_file(repository(), base_, result_, "text");
  SNAPSHOT_OK(diff);
  EXPECT_TRUE(diff->text.contains("-two\n+TWO\n")) << diff->text;
  EXPECT_FALSE(diff->cut);
  const auto cut = diff_file(repository(), base_, result_, "text", {.diff_bytes_max = 20});
  SNAPSHOT_OK(cut);
  EXPECT_TRUE(cut->cut);
  EXPECT_EQ(cut->text.size(), 20U);
  const auto image = diff_file(repository(), base_, result_, "image");
  SNAPSHOT_OK(image);
  EXPECT_TRUE(image->text.contains("Binary files")) << image->text;
  EXPECT_EQ(diff_file(repository(), base_, result_, "*")->text, "");
}

TEST_F(ChangesTest, PatchGivesTheResultInAnyClone) {
  std::string patch;
  SNAPSHOT_OK(write_patch(repository(), base_, result_, [&](std::string_view piece) {
    patch += piece;
    return Result<>{};
  }));
  write_in(home(), "the.patch", patch);
  git(home(), "clone -q repository judge");
  const std::string judge = home() + "/judge";
  git(judge, "fetch -q " + repository().folder() + " " + base_.hex());
  SNAPSHOT_OK(repository().set_refs({{"refs/heads/base", base_}}));
  git(judge, "fetch -q origin base");
  git(judge, "checkout -q FETCH_HEAD");
  git(judge, "apply --index " + home() + "/the.patch");
  EXPECT_EQ(last_status(), 0);
  EXPECT_EQ(git(judge, "write-tree"), repository().tree_of(result_)->hex() + "\n");
}

TEST_F(ChangesTest, NothingChangedIsAnEmptyList) {
  EXPECT_TRUE(list_changes(repository(), base_, base_)->empty());
}

}  // namespace
}  // namespace berth::snapshots
