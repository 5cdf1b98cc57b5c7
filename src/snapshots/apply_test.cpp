#include "snapshots/apply.hpp"

#include "snapshots/git/pack_writer.hpp"
#include "snapshots/git/tree_builder.hpp"
#include "snapshots/snapshots_fixture.hpp"

#include <fcntl.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

namespace berth::snapshots {
namespace {

class ApplyTest : public SnapshotsTest {
 protected:
  Apply apply() const { return Apply{repository(), folder()}; }
  // Changes a copy of the folder as an agent would, and returns what it came to.
  template <class Edit>
  ObjectId result_of(Edit&& edit) {
    const std::string place = home() + "/place" + std::to_string(++places_);
    std::filesystem::copy(
        folder(), place,
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    edit(place);
    return take_of(place).commit;
  }
  std::vector<std::string> drafts() const {
    std::vector<std::string> found;
    for (const std::string& name : *names_in(folder())) {
      if (name.starts_with(".berth-apply") || name.starts_with("berth-kept")) found.push_back(name);
    }
    return found;
  }

 private:
  int places_ = 0;
};

TEST_F(ApplyTest, ChangesOfBothSidesComeTogether) {
  write("text", "1\n2\n3\n4\n5\n6\n7\n8\n");
  write("removed", "x");
  write("folder/inner", "x");
  write("script", "x");
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) {
    write_in(place, "text", "ONE\n2\n3\n4\n5\n6\n7\n8\n");
    std::filesystem::remove(place + "/removed");
    std::filesystem::remove_all(place + "/folder");
    write_in(place, "folder", "now a file");
    write_in(place, "new/deep/file", "new");
    ::chmod((place + "/script").c_str(), 0755);
    ASSERT_EQ(::symlink("text", (place + "/link").c_str()), 0);
  });
  write("text", "1\n2\n3\n4\n5\n6\n7\nEIGHT\n");
  write("mine", "mine");
  ::chmod((folder() + "/script").c_str(), 0640);
  const auto checked = apply().check(base, result);
  SNAPSHOT_OK(checked);
  EXPECT_EQ(checked->changes.size(), 7U);
  EXPECT_EQ(read("folder/inner"), "x");
  const auto done = apply().apply(base, result);
  SNAPSHOT_OK(done);
  EXPECT_TRUE(done->written);
  EXPECT_EQ(read("text"), "ONE\n2\n3\n4\n5\n6\n7\nEIGHT\n");
  EXPECT_FALSE(exists("removed"));
  EXPECT_EQ(read("folder"), "now a file");
  EXPECT_EQ(read("new/deep/file"), "new");
  EXPECT_EQ(read("mine"), "mine");
  EXPECT_EQ(std::filesystem::read_symlink(folder() + "/link"), "text");
  struct stat status{};
  ASSERT_EQ(::stat((folder() + "/script").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0750U);
  EXPECT_EQ(take().tree, done->merged);
  EXPECT_TRUE(drafts().empty());
}

TEST_F(ApplyTest, ApplyingTwiceChangesNothing) {
  write("a", "1\n");
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) { write_in(place, "a", "2\n"); });
  SNAPSHOT_OK(apply().apply(base, result));
  const auto again = apply().apply(base, result);
  SNAPSHOT_OK(again);
  EXPECT_TRUE(again->changes.empty());
  EXPECT_EQ(read("a"), "2\n");
}

TEST_F(ApplyTest, ConflictWritesNothing) {
  write("a", "1\n");
  write("b", "1\n");
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) {
    write_in(place, "a", "2\n");
    write_in(place, "b", "2\n");
  });
  write("a", "3\n");
  const auto done = apply().apply(base, result);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::merge_conflict);
  EXPECT_EQ(done.error().facts.at("conflicts"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(read("a"), "3\n");
  EXPECT_EQ(read("b"), "1\n");
  EXPECT_TRUE(drafts().empty());
}

TEST_F(ApplyTest, MarkersAndSidesAreWrittenWhenAskedFor) {
  write("a", "1\n");
  write("bin", std::string("\0a", 2));
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) {
    write_in(place, "a", "2\n");
    write_in(place, "bin", std::string("\0b", 2));
  });
  write("a", "3\n");
  write("bin", std::string("\0c", 2));
  const auto marked = apply().apply(base, result, {.on_conflict = OnConflict::markers});
  SNAPSHOT_OK(marked);
  EXPECT_FALSE(marked->conflicts.empty());
  EXPECT_TRUE(read("a").contains("<<<<<<<")) << read("a");
  EXPECT_EQ(read("bin"), std::string("\0c", 2));
  EXPECT_EQ(read("bin.theirs"), std::string("\0b", 2));
  std::filesystem::remove(folder() + "/bin.theirs");
  write("a", "3\n");
  SNAPSHOT_OK(apply().apply(base, result, {.on_conflict = OnConflict::ours}));
  EXPECT_EQ(read("a"), "3\n");
  SNAPSHOT_OK(apply().apply(base, result, {.on_conflict = OnConflict::theirs}));
  EXPECT_EQ(read("a"), "2\n");
  EXPECT_EQ(read("bin"), std::string("\0b", 2));
}

TEST_F(ApplyTest, FileThatNoSnapshotHasIsNotOverwritten) {
  write("a", "1");
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) {
    write_in(place, "a", "2");
    write_in(place, "secret.env", "theirs");
  });
  write(".berthignore", "*.env\n");
  write("secret.env", "mine");
  const auto done = apply().apply(base, result);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::merge_conflict);
  EXPECT_EQ(read("secret.env"), "mine");
  EXPECT_EQ(read("a"), "1");
  EXPECT_TRUE(drafts().empty());
}

TEST_F(ApplyTest, HostileResultsAreRefusedAsAWhole) {
  write("a", "1");
  const ObjectId base = take().commit;
  auto pack = PackWriter::in(repository());
  SNAPSHOT_OK(pack);
  const ObjectId blob = *pack->add(ObjectType::blob, "evil");
  std::vector<ObjectId> trees;
  for (const char* path : {".git/hooks/post-checkout", ".GIT/config", "a\nb", "d/.git/config",
                           "git~1/config", "../../escape"}) {
    TreeBuilder builder{*pack, {}};
    ASSERT_TRUE(builder.add(path, GitMode::program, blob).has_value());
    trees.push_back(*builder.finish());
  }
  SNAPSHOT_OK(pack->finish());
  for (const ObjectId& tree : trees) {
    const auto done = apply().apply(base, tree);
    EXPECT_FALSE(done);
    EXPECT_EQ(read("a"), "1");
    EXPECT_EQ(*names_in(folder()), (std::vector<std::string>{"a"}));
  }
  EXPECT_FALSE(std::filesystem::exists(home() + "/escape"));
}

TEST_F(ApplyTest, LinkInTheWayIsNotFollowed) {
  write("d/a", "1");
  const ObjectId base = take().commit;
  const ObjectId result =
      result_of([&](const std::string& place) { write_in(place, "d/new", "2"); });
  std::filesystem::create_directory(home() + "/outside");
  std::filesystem::remove_all(folder() + "/d");
  ASSERT_EQ(::symlink((home() + "/outside").c_str(), (folder() + "/d").c_str()), 0);
  const auto done = apply().apply(base, result);
  EXPECT_TRUE(std::filesystem::is_empty(home() + "/outside"));
  EXPECT_FALSE(done);
}

// Links to the outside come and go where files are being placed.
TEST_F(ApplyTest, LinksThatAppearMeanwhileAreNeverFollowed) {
  for (int i = 0; i < 20; ++i) write("d/f" + std::to_string(i), "1");
  const ObjectId base = take().commit;
  const ObjectId result = result_of([&](const std::string& place) {
    for (int i = 0; i < 20; ++i) write_in(place, "d/f" + std::to_string(i), "2");
    write_in(place, "d/new", "2");
  });
  std::filesystem::create_directory(home() + "/outside");
  std::atomic<bool> stop = false;
  std::thread attacker{[&] {
    const std::string from = folder() + "/d";
    const std::string aside = home() + "/aside";
    while (!stop) {
      if (std::rename(from.c_str(), aside.c_str()) != 0) continue;
      if (::symlink((home() + "/outside").c_str(), from.c_str()) == 0) ::unlink(from.c_str());
      std::rename(aside.c_str(), from.c_str());
    }
  }};
  for (int i = 0; i < 15; ++i) static_cast<void>(apply().apply(base, result));
  stop = true;
  attacker.join();
  EXPECT_TRUE(std::filesystem::is_empty(home() + "/outside"));
}

// A user's editor saves while changes are applied: every version that was saved last is there.
TEST_F(ApplyTest, WriteDuringApplyIsNeverLost) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 8; ++i) write("f" + std::to_string(i), "base\n");
    const ObjectId base = take().commit;
    const ObjectId result = result_of([&](const std::string& place) {
      for (int i = 0; i < 8; ++i) write_in(place, "f" + std::to_string(i), "theirs\n");
    });
    std::thread editor{[&] {
      const std::string draft = folder() + "/.editor";
      std::ofstream{draft} << "edited\n";
      std::rename(draft.c_str(), (folder() + "/f5").c_str());
    }};
    const auto done = apply().apply(base, result);
    editor.join();
    bool found = read("f5") == "edited\n";
    // The editor replaced what had been placed, which was then put back: its version was kept.
    for (const std::string& name : drafts()) {
      for (const auto& entry : std::filesystem::directory_iterator{folder() + "/" + name}) {
        found = found || read_file(entry.path(), 100).value_or("") == "edited\n";
      }
      static_cast<void>(remove_tree(folder() + "/" + name));
    }
    EXPECT_TRUE(found) << read("f5") << (done ? "" : done.error().message);
  }
}

TEST_F(ApplyTest, SecondApplyAtTheSameTimeIsBusy) {
  write("a", "1");
  const ObjectId base = take().commit;
  std::string lock;
  SNAPSHOT_OK(apply().apply(base, base));
  for (const std::string& name : *names_in(repository().folder() + "/berth")) {
    if (name.ends_with(".journal.lock")) lock = repository().folder() + "/berth/" + name;
  }
  const auto held = FileLock::take(lock, FileLock::Kind::exclusive);
  SNAPSHOT_OK(held);
  const auto done = apply().apply(base, base);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::workspace_busy);
}

// Random trees: what apply makes of the folder is the tree that the merge says.
TEST_F(ApplyTest, TargetIsTheMergedTreeAfterwards) {
  std::mt19937 random{7};
  const auto change = [&](const std::string& place) {
    for (int i = 0; i < 6; ++i) {
      const std::string path = std::string{random() % 2 == 0 ? "x/" : ""} +
                               (random() % 2 == 0 ? "y/" : "") + "f" + std::to_string(random() % 6);
      std::error_code ignored;
      if (random() % 4 == 0) {
        std::filesystem::remove_all(place + "/" + path, ignored);
      } else {
        std::filesystem::create_directories(std::filesystem::path{place + "/" + path}.parent_path(),
                                            ignored);
        std::ofstream{place + "/" + path} << random() % 3 << "\n";
      }
    }
  };
  int applied = 0;
  for (int round = 0; round < 40; ++round) {
    static_cast<void>(remove_tree(folder()));
    std::filesystem::create_directory(folder());
    change(folder());
    const ObjectId base = take().commit;
    const ObjectId result = result_of(change);
    change(folder());
    const ObjectId before = take().tree;
    const auto done = apply().apply(base, result);
    if (!done) {
      EXPECT_EQ(done.error().code, Errc::merge_conflict) << done.error().message;
      EXPECT_EQ(take().tree, before);
      continue;
    }
    ++applied;
    EXPECT_EQ(take().tree, done->merged);
    EXPECT_TRUE(drafts().empty());
  }
  EXPECT_GT(applied, 5);
}

// A child process is killed at each point; then the target has the old tree or, after the next
// apply, the new one.
class ApplyCrashTest : public ApplyTest, public testing::WithParamInterface<const char*> {};

TEST_P(ApplyCrashTest, KilledApplyLeavesTheOldTreeOrIsCompleted) {
  for (int i = 0; i < 5; ++i) write("d" + std::to_string(i) + "/f", "old\n");
  write("removed/f", "old\n");
  const Snapshot base = take();
  const ObjectId result = result_of([&](const std::string& place) {
    for (int i = 0; i < 5; ++i) write_in(place, "d" + std::to_string(i) + "/f", "new\n");
    std::filesystem::remove_all(place + "/removed");
    write_in(place, "added/f", "new\n");
  });
  ASSERT_TRUE(dies_at(GetParam(),
                      {"apply", repository().folder(), folder(), base.commit.hex(), result.hex()}));
  for (int i = 0; i < 5; ++i) {
    const std::string text = read("d" + std::to_string(i) + "/f");
    EXPECT_TRUE(text == "old\n" || text == "new\n") << text;
  }
  const bool begun = std::string_view{GetParam()} != "apply.drafted";
  SNAPSHOT_OK(apply().recover());
  EXPECT_EQ(take().tree, begun ? *repository().tree_of(result) : base.tree);
  const auto done = apply().apply(base.commit, result);
  SNAPSHOT_OK(done);
  EXPECT_EQ(take().tree, *repository().tree_of(result));
  EXPECT_TRUE(drafts().empty());
  EXPECT_FALSE(exists("removed"));
}

INSTANTIATE_TEST_SUITE_P(EveryPoint, ApplyCrashTest,
                         testing::Values("apply.drafted", "apply.journaled", "apply.placing:1",
                                         "apply.placing:3", "apply.placing:7", "apply.placed",
                                         "apply.forgotten"));

TEST_F(ApplyTest, FileThatChangedAfterAKillIsKeptAndMergedAgain) {
  write("a", "1\n2\n3\n4\n5\n6\n7\n8\n");
  write("b", "1\n2\n3\n4\n5\n6\n7\n8\n");
  const Snapshot base = take();
  const ObjectId result = result_of([&](const std::string& place) {
    write_in(place, "a", "A\n2\n3\n4\n5\n6\n7\n8\n");
    write_in(place, "b", "B\n2\n3\n4\n5\n6\n7\n8\n");
  });
  ASSERT_TRUE(dies_at("apply.placing:1",
                      {"apply", repository().folder(), folder(), base.commit.hex(), result.hex()}));
  write("b", "1\n2\n3\n4\n5\n6\n7\nmine\n");
  const auto done = apply().apply(base.commit, result);
  SNAPSHOT_OK(done);
  EXPECT_EQ(done->unfinished, (std::vector<std::string>{"b"}));
  EXPECT_EQ(read("a"), "A\n2\n3\n4\n5\n6\n7\n8\n");
  EXPECT_EQ(read("b"), "B\n2\n3\n4\n5\n6\n7\nmine\n");
}

}  // namespace
}  // namespace berth::snapshots
