#include "snapshots/git/repository.hpp"

#include "snapshots/snapshots_fixture.hpp"

namespace berth::snapshots {
namespace {

using RepositoryTest = SnapshotsTest;

TEST_F(RepositoryTest, CreatingTwiceFindsTheSame) {
  write("a", "text");
  const Snapshot taken = take();
  const auto again = Repository::create(GitProgram{}, repository().folder());
  SNAPSHOT_OK(again);
  EXPECT_TRUE(again->tree_of(taken.commit).has_value());
}

TEST_F(RepositoryTest, FolderThatIsNotARepositoryIsCorrupt) {
  const auto opened = Repository::create(GitProgram{}, folder());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::workspace_corrupt);
}

TEST_F(RepositoryTest, RefsOfARunAreSetFoundAndForgotten) {
  write("a", "text");
  const Snapshot taken = take();
  const std::string name = *Repository::ref_of("run-1", RunRef::base);
  EXPECT_EQ(name, "refs/berth/runs/run-1/base");
  SNAPSHOT_OK(repository().set_refs({{name, taken.commit}}));
  EXPECT_EQ(repository().ref(name)->value(), taken.commit);
  SNAPSHOT_OK(repository().forget_run("run-1"));
  EXPECT_FALSE(repository().ref(name)->has_value());
  SNAPSHOT_OK(repository().forget_run("run-1"));
}

TEST_F(RepositoryTest, RunNamesThatCouldBePathsAreRefused) {
  for (const char* run : {"", "..", "a/b", "a b", "a\nb", "-\xff"}) {
    EXPECT_FALSE(Repository::ref_of(run, RunRef::base)) << run;
  }
}

TEST_F(RepositoryTest, GarbageCollectionKeepsWhatARefNeedsAndNothingElse) {
  write("kept", "kept");
  const Snapshot kept = take();
  SNAPSHOT_OK(repository().set_refs({{*Repository::ref_of("r", RunRef::base), kept.commit}}));
  write("lost", "lost");
  const Snapshot lost = take();
  SNAPSHOT_OK(repository().collect_garbage());
  EXPECT_TRUE(repository().tree_of(kept.commit).has_value());
  const auto gone = repository().tree_of(lost.commit);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Errc::snapshot_not_found);
  SNAPSHOT_OK(repository().verify());
  EXPECT_GT(*repository().bytes(), 0U);
}

TEST_F(RepositoryTest, GarbageCollectionWaitsForNoOne) {
  const auto adding = repository().hold_objects();
  SNAPSHOT_OK(adding);
  const auto collected = repository().collect_garbage();
  ASSERT_FALSE(collected);
  EXPECT_EQ(collected.error().code, Errc::workspace_busy);
}

TEST_F(RepositoryTest, VerifyFindsADamagedPack) {
  write("a", std::string(5000, 'a'));
  const Snapshot taken = take();
  SNAPSHOT_OK(repository().set_refs({{*Repository::ref_of("r", RunRef::base), taken.commit}}));
  for (const auto& entry :
       std::filesystem::directory_iterator{repository().folder() + "/objects/pack"}) {
    if (entry.path().extension() != ".pack") continue;
    ::chmod(entry.path().c_str(), 0600);
    std::fstream file{entry.path(), std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(20);
    file << "damage";
  }
  const auto checked = repository().verify();
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Errc::workspace_corrupt);
}

}  // namespace
}  // namespace berth::snapshots
