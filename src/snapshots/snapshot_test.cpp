#include "snapshots/snapshot.hpp"

#include "snapshots/checkout.hpp"
#include "snapshots/git/object_reader.hpp"
#include "snapshots/snapshots_fixture.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace berth::snapshots {
namespace {

class SnapshotTest : public SnapshotsTest {
 protected:
  bool has_notice(const Snapshot& snapshot, const std::string& path, Reason reason) const {
    return std::ranges::find(snapshot.notices, Notice{path, reason}) != snapshot.notices.end();
  }
  std::string content(const Snapshot& snapshot, const std::string& path) const {
    for (const ScannedEntry& entry : snapshot.entries) {
      if (entry.path == path) return read_blob(repository(), entry.id, 1 << 20).value_or("?");
    }
    return "no such path";
  }
  // Old enough for the cache to believe its times.
  void age_everything() const {
    const timespec then{.tv_sec = 1'000'000'000, .tv_nsec = 5};
    const std::array<timespec, 2> times{then, then};
    for (const auto& entry : std::filesystem::recursive_directory_iterator{folder()}) {
      ::utimensat(AT_FDCWD, entry.path().c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    }
    // The time of the last change of an inode cannot be set: wait until the clock has passed it.
    timespec start{};
    ::clock_gettime(CLOCK_MONOTONIC, &start);
    timespec now = start;
    while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1'000'000 < 80) {
      ::clock_gettime(CLOCK_MONOTONIC, &now);
    }
  }
};

TEST_F(SnapshotTest, TreeIsThatOfGit) {
  write("a.b", "1");
  write("a/b", "2");
  write("a-b", "3");
  write("a/c/d", "");
  write("bin/run", "#!/bin/sh\n");
  ::chmod((folder() + "/bin/run").c_str(), 0755);
  ASSERT_EQ(::symlink("../nowhere", (folder() + "/a/link").c_str()), 0);
  const Snapshot taken = take();
  git(folder(), "init -q");
  git(folder(), "add -A");
  EXPECT_EQ(git(folder(), "write-tree"), taken.tree.hex() + "\n");
  EXPECT_EQ(taken.files, 6U);
  EXPECT_TRUE(repository().verify());
}

TEST_F(SnapshotTest, EmptyFolderIsTheEmptyTree) {
  const Snapshot taken = take();
  EXPECT_EQ(taken.tree.hex(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
  EXPECT_TRUE(repository().tree_of(taken.commit).has_value());
}

TEST_F(SnapshotTest, UnchangedFilesAreNotReadAgain) {
  for (int i = 0; i < 50; ++i) write("d" + std::to_string(i % 7) + "/f" + std::to_string(i), "x");
  age_everything();
  const SnapshotOptions options{.cache = "one"};
  const Snapshot first = take(options);
  EXPECT_EQ(first.files_read, 50U);
  const Snapshot second = take(options);
  EXPECT_EQ(second.files_read, 0U);
  EXPECT_EQ(second.commit, first.commit);
  write("d1/f1", "y");
  const Snapshot third = take(options);
  EXPECT_EQ(third.files_read, 1U);
  EXPECT_NE(third.tree, first.tree);
  EXPECT_EQ(third.tree, take().tree);
  std::filesystem::remove(folder() + "/d1/f1");
  EXPECT_EQ(take(options).tree, take().tree);
}

TEST_F(SnapshotTest, WriteWithinTheClocksResolutionIsSeen) {
  const SnapshotOptions options{.cache = "one"};
  for (int i = 0; i < 20; ++i) {
    write("f", std::string(1, static_cast<char>('a' + i)));
    EXPECT_EQ(content(take(options), "f"), std::string(1, static_cast<char>('a' + i)));
  }
}

TEST_F(SnapshotTest, CacheWithoutItsObjectsIsNotBelieved) {
  write("f", "text");
  age_everything();
  const SnapshotOptions options{.cache = "one"};
  take(options);
  SNAPSHOT_OK(repository().remove_refs({"refs/berth/caches/one"}));
  SNAPSHOT_OK(repository().collect_garbage());
  EXPECT_EQ(content(take(options), "f"), "text");
}

TEST_F(SnapshotTest, DamagedCacheIsNotBelieved) {
  write("f", "text");
  age_everything();
  const SnapshotOptions options{.cache = "one"};
  const Snapshot first = take(options);
  const std::string path = repository().folder() + "/berth/stat-one";
  std::string bytes = *read_file(path, 1 << 20);
  bytes[bytes.size() - 25] ^= 1;
  std::ofstream{path, std::ios::binary} << bytes;
  const Snapshot second = take(options);
  EXPECT_EQ(second.files_read, 1U);
  EXPECT_EQ(second.tree, first.tree);
}

TEST_F(SnapshotTest, IgnoredFilesRemainOutAndTrackedOnesDoNot) {
  git(folder(), "init -q");
  write(".gitignore", "*.log\n/out/\n");
  write("a.log", "1");
  write("tracked.log", "2");
  write("out/tracked", "3");
  write("out/other", "4");
  write("kept", "5");
  git(folder(), "add -f tracked.log out/tracked .gitignore");
  const Snapshot taken = take();
  EXPECT_EQ(paths_in(taken),
            (std::vector<std::string>{".gitignore", "kept", "out/tracked", "tracked.log"}));
  EXPECT_TRUE(has_notice(taken, "a.log", Reason::ignored));
  EXPECT_EQ(taken.left_out, 2U);
}

TEST_F(SnapshotTest, OwnRulesComeBeforeThoseOfGit) {
  git(folder(), "init -q");
  write(".gitignore", "generated\n");
  write(".berthignore", "private\n!generated\n");
  write("generated", "1");
  write("private", "2");
  write("given", "3");
  git(folder(), "add -f private");
  const Snapshot taken = take({.scan = {.exclude = {"/given"}}});
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{".berthignore", ".gitignore", "generated"}));
  EXPECT_TRUE(has_notice(taken, "private", Reason::excluded));
  EXPECT_TRUE(has_notice(taken, "given", Reason::excluded));
}

TEST_F(SnapshotTest, HeavyNamesRemainOutOfAFolderThatIsNotARepository) {
  write("node_modules/a/index.js", "1");
  write("src/dist/b", "2");
  write("src/c", "3");
  EXPECT_EQ(paths_in(take()), (std::vector<std::string>{"src/c"}));
  const Snapshot some = take({.scan = {.include = {"node_modules/a"}}});
  EXPECT_EQ(paths_in(some), (std::vector<std::string>{"node_modules/a/index.js", "src/c"}));
  EXPECT_TRUE(has_notice(some, "src/dist", Reason::heavy));
  git(folder(), "init -q");
  EXPECT_EQ(paths_in(take()).size(), 3U);
}

TEST_F(SnapshotTest, SpecialFilesAreReportedAndNeverOpened) {
  write("a", "1");
  ASSERT_EQ(::mkfifo((folder() + "/pipe").c_str(), 0600), 0);
  const Fd socket{::socket(AF_UNIX, SOCK_STREAM, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder().c_str());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  write("setuid", "2");
  ::chmod((folder() + "/setuid").c_str(), 04755);
  const Snapshot taken = take();
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{"a", "setuid"}));
  EXPECT_TRUE(has_notice(taken, "pipe", Reason::special_file));
  EXPECT_TRUE(has_notice(taken, "socket", Reason::special_file));
  EXPECT_TRUE(has_notice(taken, "setuid", Reason::set_id_bit));
}

TEST_F(SnapshotTest, LinksAreTakenAsLinksWhereverTheyLead) {
  ASSERT_EQ(::symlink("/etc/passwd", (folder() + "/absolute").c_str()), 0);
  ASSERT_EQ(::symlink("/etc", (folder() + "/etc").c_str()), 0);
  const Snapshot taken = take();
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{"absolute", "etc"}));
  EXPECT_EQ(content(taken, "absolute"), "/etc/passwd");
}

TEST_F(SnapshotTest, NestedRepositoriesBecomeTheirCommits) {
  write("sub/file", "1");
  git(folder() + "/sub", "init -q");
  git(folder() + "/sub", "add file");
  git(folder() + "/sub", "commit -qm one");
  write("fresh/file", "2");
  git(folder() + "/fresh", "init -q");
  const Snapshot taken = take();
  ASSERT_EQ(paths_in(taken), (std::vector<std::string>{"sub"}));
  EXPECT_EQ(taken.entries.front().mode, GitMode::commit);
  EXPECT_EQ(taken.entries.front().id.hex() + "\n", git(folder() + "/sub", "rev-parse HEAD"));
  EXPECT_TRUE(has_notice(taken, "sub", Reason::nested_repository));
  EXPECT_TRUE(has_notice(taken, "fresh", Reason::nested_without_commit));
  const SnapshotOptions options{.cache = "one"};
  EXPECT_EQ(take(options).tree, taken.tree);
  std::filesystem::remove_all(folder() + "/sub");
  EXPECT_EQ(take(options).tree, take().tree);
}

TEST_F(SnapshotTest, SubmoduleThatIsNotCheckedOutKeepsItsCommit) {
  git(folder(), "init -q");
  git(folder(), "update-index --add --cacheinfo 160000,1234567890123456789012345678901234567890,s");
  std::filesystem::create_directory(folder() + "/s");
  const Snapshot taken = take();
  ASSERT_EQ(taken.entries.size(), 1U);
  EXPECT_EQ(taken.entries.front().id.hex(), "1234567890123456789012345678901234567890");
}

TEST_F(SnapshotTest, LargeFilePointersAreReported) {
  write("big", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  age_everything();
  const SnapshotOptions options{.cache = "one"};
  EXPECT_TRUE(has_notice(take(options), "big", Reason::lfs_pointer));
  EXPECT_TRUE(has_notice(take(options), "big", Reason::lfs_pointer));
}

TEST_F(SnapshotTest, NamesThatAreNotUtf8Work) {
  write("caf\xe9", "1");
  write("\xff\xfe/x", "2");
  const Snapshot taken = take();
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{"caf\xe9", "\xff\xfe/x"}));
  SNAPSHOT_OK(check_out(repository(), taken.commit, home() + "/out"));
  EXPECT_TRUE(std::filesystem::exists(home() + "/out/\xff\xfe/x"));
}

TEST_F(SnapshotTest, NamesThatCouldMeanGitElsewhereRemainOut) {
  write(".GIT/config", "1");
  write("a/git~1", "2");
  write("a/.git ", "3");
  write("a/.g\u200cit", "4");
  write("a/new\nline", "5");
  write("a/ok", "6");
  const Snapshot taken = take();
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{"a/ok"}));
  EXPECT_TRUE(has_notice(taken, ".GIT", Reason::name));
  EXPECT_EQ(taken.left_out, 5U);
}

TEST_F(SnapshotTest, GitSourcesOfEveryKindWork) {
  // Uncommitted, untracked, shallow, detached, and a worktree of them.
  git(home(), "init -q origin");
  const std::string origin = home() + "/origin";
  for (const char* text : {"1", "2", "3"}) {
    write_in(origin, "file", text);
    git(origin, "add file");
    git(origin, "commit -qm " + std::string{text});
  }
  git(home(), "clone -q --depth 1 file://" + origin + " shallow");
  const std::string shallow = home() + "/shallow";
  git(shallow, "checkout -q --detach");
  write_in(shallow, "untracked", "x");
  write_in(shallow, "file", "changed");
  EXPECT_EQ(paths_in(take_of(shallow)), (std::vector<std::string>{"file", "untracked"}));
  git(shallow, "worktree add -q " + home() + "/tree");
  write_in(home() + "/tree", ".gitignore", "file\n");
  const Snapshot of_tree = take_of(home() + "/tree");
  EXPECT_EQ(paths_in(of_tree), (std::vector<std::string>{".gitignore", "file"}));
}

TEST_F(SnapshotTest, BrokenIndexIsAnErrorThatNamesTheFolder) {
  git(folder(), "init -q");
  write("a", "1");
  write(".git/index", "DIRC broken");
  const auto taken = take_snapshot(repository(), folder(), {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::workspace_invalid);
  EXPECT_TRUE(taken.error().message.contains(folder())) << taken.error().message;
}

TEST_F(SnapshotTest, ConfigurationOfTheSourceHasNoEffect) {
  git(folder(), "init -q");
  write(".gitattributes", "* filter=evil text eol=crlf ident\n");
  git(folder(), "config filter.evil.clean 'touch " + home() + "/ran; cat'");
  git(folder(), "config core.fsmonitor 'touch " + home() + "/ran'");
  write(".git/hooks/post-index-change", "#!/bin/sh\ntouch " + home() + "/ran\n");
  ::chmod((folder() + "/.git/hooks/post-index-change").c_str(), 0755);
  write("a", "one\r\ntwo $Id$\n");
  const Snapshot taken = take();
  EXPECT_EQ(content(taken, "a"), "one\r\ntwo $Id$\n");
  SNAPSHOT_OK(check_out(repository(), taken.commit, home() + "/out"));
  EXPECT_EQ(*read_file(home() + "/out/a", 100), "one\r\ntwo $Id$\n");
  EXPECT_FALSE(std::filesystem::exists(home() + "/ran"));
}

TEST_F(SnapshotTest, RefusalsNameTheLargestEntries) {
  write("small", "1");
  write("large", std::string(5000, 'x'));
  for (const SnapshotLimits& limits :
       {SnapshotLimits{.bytes_max = 4000}, SnapshotLimits{.file_bytes_max = 4000}}) {
    const auto taken = take_snapshot(repository(), folder(), {.scan = {.limits = limits}});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::workspace_too_large);
    EXPECT_TRUE(taken.error().message.contains("'large' (5000 bytes)")) << taken.error().message;
  }
  for (int i = 0; i < 9; ++i) write("many/deep/" + std::to_string(i), "1");
  const auto many = take_snapshot(repository(), folder(), {.scan = {.limits = {.files_max = 5}}});
  ASSERT_FALSE(many);
  EXPECT_TRUE(many.error().message.contains("'many/deep' (")) << many.error().message;
}

TEST_F(SnapshotTest, VeryDeepFoldersAreRefusedWithoutRecursion) {
  Fd at{::open(folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at = Fd{::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  }
  const auto taken = take_snapshot(repository(), folder(), {});
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::workspace_too_large);
}

TEST_F(SnapshotTest, NotAFolderIsInvalid) {
  write("file", "1");
  for (const std::string& path : {folder() + "/file", folder() + "/nothing"}) {
    const auto taken = take_snapshot(repository(), path, {});
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Errc::workspace_invalid);
  }
}

TEST_F(SnapshotTest, SecretsRemainOutUnderAnyName) {
  write("token", "secret");
  ASSERT_EQ(::link((folder() + "/token").c_str(), (folder() + "/copy").c_str()), 0);
  struct stat status{};
  ASSERT_EQ(::stat((folder() + "/token").c_str(), &status), 0);
  write("other", "1");
  const Snapshot taken = take({.scan = {.hidden = {{status.st_dev, status.st_ino}}}});
  EXPECT_EQ(paths_in(taken), (std::vector<std::string>{"other"}));
}

TEST_F(SnapshotTest, SparseFilesAreTaken) {
  write("sparse", "");
  ASSERT_EQ(::truncate((folder() + "/sparse").c_str(), 64 << 20), 0);
  const Snapshot taken = take();
  EXPECT_EQ(taken.bytes, 64U << 20);
  EXPECT_LT(*repository().bytes(), 1U << 20);
}

// A writer alternates between two contents; a snapshot has one of them, whole.
TEST_F(SnapshotTest, FileThatChangesWhileItIsReadIsNeverAMixture) {
  const std::string a(3 << 20, 'a');
  const std::string b(3 << 20, 'b');
  write("f", a);
  std::atomic<bool> stop = false;
  std::thread writer{[&] {
    while (!stop) {
      for (const std::string& text : {b, a}) {
        const Fd file{::open((folder() + "/f").c_str(), O_WRONLY | O_CLOEXEC)};
        for (std::size_t at = 0; at < text.size(); at += 64 << 10) {
          if (::pwrite(file.get(), text.data() + at, 64 << 10, static_cast<off_t>(at)) < 0) return;
        }
      }
    }
  }};
  for (int i = 0; i < 5; ++i) {
    const auto taken = take_snapshot(repository(), folder(), {});
    if (!taken) EXPECT_EQ(taken.error().code, Errc::workspace_unsteady) << taken.error().message;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(take().bytes, a.size());
}

// Folders become links to the outside and back while they are read: nothing of the outside is
// taken.
TEST_F(SnapshotTest, LinkThatReplacesAFolderMeanwhileIsNotFollowed) {
  write_in(home(), "outside/secret", "secret");
  write("d/inside", "1");
  std::atomic<bool> stop = false;
  std::thread attacker{[&] {
    const std::string from = folder() + "/d";
    const std::string aside = home() + "/aside";
    while (!stop) {
      std::rename(from.c_str(), aside.c_str());
      if (::symlink((home() + "/outside").c_str(), from.c_str()) != 0) continue;
      ::unlink(from.c_str());
      std::rename(aside.c_str(), from.c_str());
    }
  }};
  for (int i = 0; i < 200; ++i) {
    const auto taken = take_snapshot(repository(), folder(), {});
    if (!taken) continue;
    for (const ScannedEntry& entry : taken->entries) {
      EXPECT_FALSE(entry.path.contains("secret")) << entry.path;
    }
  }
  stop = true;
  attacker.join();
}

}  // namespace
}  // namespace berth::snapshots
