#include "engine/upkeep/home_disk.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace berth::engine {
namespace {

constexpr const char* session = "6f1d2c3b-0000-4000-8000-000000000001";

class HomeDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    reopen();
    ASSERT_TRUE(make_directories(home(), 0700));
  }
  void reopen() {
    SeededRandom random{seed_++};
    auto disk = HomeDisk::open(folder_.path() + "/agents", random, Time{1});
    ASSERT_TRUE(disk) << disk.error().message;
    disk_.emplace(*std::move(disk));
  }
  template <class T>
  Result<T> run(Task<T> task) {
    std::optional<Result<T>> out;
    asio::co_spawn(loop_, std::move(task), [&](const std::exception_ptr& thrown, Result<T> done) {
      if (!thrown) out = std::move(done);
    });
    loop_.restart();
    loop_.run();
    return *std::move(out);
  }
  std::string home() const { return folder_.path() + "/agents/" + id_.str() + "/home"; }
  void write(const std::string& path, std::string_view text) {
    const std::string full = home() + "/" + path;
    ASSERT_TRUE(make_directories(parent_of(full), 0700));
    ASSERT_TRUE(replace_file(full, text, 0600));
  }
  bool holds(core::AdapterType adapter) {
    const Result<bool> held = run(disk_->holds_session(id_, adapter, session));
    EXPECT_TRUE(held) << held.error().message;
    return held && *held;
  }

  tests::TemporaryFolder folder_;
  std::uint64_t seed_ = 1;
  asio::io_context loop_;
  std::optional<HomeDisk> disk_;
  core::AgentHomeId id_ = *core::AgentHomeId::parse("00000000-0000-7000-8000-000000000001");
};

TEST_F(HomeDiskTest, HasTheSameNameAfterARestart) {
  const std::string before = disk_->place();
  reopen();
  EXPECT_EQ(disk_->place(), before);
}

TEST_F(HomeDiskTest, FindsTheSessionsOfBothPrograms) {
  EXPECT_FALSE(holds(core::AdapterType::claude_local));
  write(std::string{".claude/projects/-work/"} + session + ".jsonl", "{}");
  EXPECT_TRUE(holds(core::AdapterType::claude_local));
  EXPECT_FALSE(holds(core::AdapterType::codex_local));
  write(std::string{".codex/sessions/2026/01/02/rollout-1-"} + session + ".jsonl", "{}");
  EXPECT_TRUE(holds(core::AdapterType::codex_local));
}

TEST_F(HomeDiskTest, CountsADeletedFileThatAProcessHasOpen) {
  write("file", std::string(std::size_t{3} << 20, 'x'));
  const std::int64_t before = run(disk_->measure(id_, 100))->bytes;
  const Fd open_file{::open((home() + "/file").c_str(), O_RDONLY | O_CLOEXEC)};
  ASSERT_TRUE(open_file);
  ASSERT_EQ(::unlink((home() + "/file").c_str()), 0);
  EXPECT_EQ(run(disk_->measure(id_, 100))->bytes, before);
}

TEST_F(HomeDiskTest, FollowsNoLink) {
  const std::string outside = folder_.path() + "/outside";
  ASSERT_TRUE(make_directories(outside + "/x", 0700));
  ASSERT_TRUE(replace_file(outside + "/x/" + session + ".jsonl", std::string(1 << 20, 'x'), 0600));
  ASSERT_TRUE(make_directories(home() + "/.claude", 0700));
  ASSERT_EQ(::symlink(outside.c_str(), (home() + "/.claude/projects").c_str()), 0);
  EXPECT_FALSE(holds(core::AdapterType::claude_local));
  ASSERT_EQ(::symlink("/", (home() + "/all").c_str()), 0);
  const Result<HomeSize> size = run(disk_->measure(id_, 1000));
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->files, 3);
  EXPECT_LT(size->bytes, 1 << 20);
  ASSERT_TRUE(run(disk_->remove(id_)));
  EXPECT_EQ(::access((outside + "/x/" + session + ".jsonl").c_str(), F_OK), 0);
}

TEST_F(HomeDiskTest, CountsNoFurtherThanItIsAsked) {
  for (int i = 0; i < 20; ++i) write("file" + std::to_string(i), "x");
  const Result<HomeSize> size = run(disk_->measure(id_, 5));
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->files, 6);
  EXPECT_FALSE(size->is_all);
}

TEST_F(HomeDiskTest, SaysWhatItCannotLookInto) {
  write("plain/file", "x");
  EXPECT_FALSE(run(disk_->measure(id_, 1000))->hidden);
  std::string deep;
  for (int i = 0; i < 140; ++i) deep += "d/";
  write(deep + "file", std::string(1 << 20, 'x'));
  const Result<HomeSize> size = run(disk_->measure(id_, 1000));
  ASSERT_TRUE(size) << size.error().message;
  ASSERT_TRUE(size->hidden) << "a megabyte that is not counted";
  EXPECT_TRUE(size->hidden->contains("is deeper than")) << *size->hidden;
}

// Exits with 0 if an ordinary user cannot look into the home. For root, nothing is closed.
void look_as_ordinary_user(const std::string& folder, const core::AgentHomeId& id) {
  constexpr uid_t ordinary = 65534;
  const std::string home = folder + "/agents/" + id.str() + "/home";
  const auto give = [](const std::string& path) {
    if (::geteuid() == 0 && ::lchown(path.c_str(), ordinary, ordinary) != 0) ::_exit(2);
  };
  give(folder);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    give(entry.path());
  }
  if (::geteuid() == 0 && ::setresuid(ordinary, ordinary, ordinary) != 0) ::_exit(3);
  if (::chmod(home.c_str(), 0) != 0) ::_exit(4);
  SeededRandom random{7};
  const auto disk = HomeDisk::open(folder + "/agents", random, Time{1});
  if (!disk) ::_exit(5);
  asio::io_context loop;
  bool is_hidden = false;
  asio::co_spawn(loop, disk->measure(id, 1000),
                 [&](const std::exception_ptr& thrown, const Result<HomeSize>& size) {
                   is_hidden = !thrown && size && size->hidden;
                 });
  loop.run();
  ::_exit(is_hidden ? 0 : 1);
}

TEST_F(HomeDiskTest, AHomeThatIsClosedToTheServerIsNotEmpty) {
  write("file", "x");
  disk_.reset();  // its threads do not exist in the child
  EXPECT_EXIT(look_as_ordinary_user(folder_.path(), id_), testing::ExitedWithCode(0), "");
  ASSERT_EQ(::chmod(home().c_str(), 0700), 0);
}

TEST_F(HomeDiskTest, ListsAndRemovesWhatItHas) {
  EXPECT_EQ(run(disk_->list())->size(), 1U);
  ASSERT_TRUE(run(disk_->remove(id_)));
  EXPECT_TRUE(run(disk_->list())->empty());
}

TEST_F(HomeDiskTest, KeepsOneSessionFileForPlacesThatKeepNone) {
  const std::string bytes{"{\"a\":1}\n\0x\n", 11};
  ASSERT_TRUE(run(disk_->keep_session(id_, "old", {.path = "p", .bytes = "b"})));
  ASSERT_TRUE(run(disk_->keep_session(id_, session, {.path = ".claude/x.jsonl", .bytes = bytes})));
  const auto kept = run(disk_->kept_session(id_, session));
  ASSERT_TRUE(kept && *kept);
  EXPECT_EQ((*kept)->path, ".claude/x.jsonl");
  EXPECT_EQ((*kept)->bytes, bytes);
  EXPECT_FALSE(*run(disk_->kept_session(id_, "old")));
}

}  // namespace
}  // namespace berth::engine
