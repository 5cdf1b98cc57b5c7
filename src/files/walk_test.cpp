#include "files/walk.hpp"

#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace berth::files {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WalkTest : public testing::Test {
 protected:
  Result<Walk> start(Limits limits = {}) const {
    const Fd top{::open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
    return Walk::from(top.get(), ".", Mounts::refused, limits);
  }
  // The paths in the order in which they came; refused ones have a '!'.
  static Result<std::vector<std::string>> paths(Walk walk) {
    std::vector<std::string> out;
    while (true) {
      BERTH_TRY(const std::optional<Walk::Item> item, walk.next());
      if (!item) return out;
      out.push_back((item->refusal ? "!" : "") + item->path);
    }
  }

  const tests::TemporaryFolder folder_;
};

TEST_F(WalkTest, EveryThingComesOnceAndFoldersBeforeTheirContent) {
  fs::create_directories(folder_.file("a/b/c"));
  fs::create_directories(folder_.file("d"));
  std::ofstream{folder_.file("a/b/file")} << "x";
  fs::create_symlink("..", folder_.file("a/up"));
  auto walk = start();
  ASSERT_TRUE(walk.has_value());
  const auto found = paths(*std::move(walk));
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(*found, ::testing::ElementsAre("a", "a/b", "a/b/c", "a/b/file", "a/up", "d"));
}

TEST_F(WalkTest, NamesComeInByteOrderWhateverTheirOrderOnDisk) {
  for (const char* name : {"b", "a-", "a", "Z", "a.b", "\xff"}) std::ofstream{folder_.file(name)};
  auto walk = start();
  ASSERT_TRUE(walk.has_value());
  EXPECT_THAT(*paths(*std::move(walk)), ::testing::ElementsAre("Z", "a", "a-", "a.b", "b", "\xff"));
}

TEST_F(WalkTest, AnItemDescribesTheEntryWithoutOpeningIt) {
  std::ofstream{folder_.file("a")} << "12345";
  ASSERT_EQ(::chmod(folder_.file("a").c_str(), 0640), 0);
  fs::create_hard_link(folder_.file("a"), folder_.file("b"));
  fs::create_symlink("../elsewhere", folder_.file("c"));
  ASSERT_EQ(::mkfifo(folder_.file("d").c_str(), 0600), 0);
  auto walk = start();
  ASSERT_TRUE(walk.has_value());
  const auto a = *walk->next();
  const auto b = *walk->next();
  const auto c = *walk->next();
  const auto d = *walk->next();
  ASSERT_TRUE(a && b && c && d);
  EXPECT_EQ(a->type(), EntryType::file);
  EXPECT_EQ(a->found.status.st_size, 5);
  EXPECT_EQ(a->found.status.st_mode & 07777, 0640U);
  EXPECT_TRUE(a->has_other_names());
  EXPECT_EQ(a->id(), b->id());
  EXPECT_EQ(c->type(), EntryType::symbolic_link);
  EXPECT_EQ(c->target, "../elsewhere");
  EXPECT_NE(c->id(), a->id());
  EXPECT_EQ(d->type(), EntryType::pipe);
}

TEST_F(WalkTest, TheContentOfASkippedFolderIsLeftOut) {
  fs::create_directories(folder_.file("a/b"));
  fs::create_directories(folder_.file("c/d"));
  auto walk = start();
  ASSERT_TRUE(walk.has_value());
  ASSERT_EQ((*walk->next())->path, "a");
  walk->skip_content();
  walk->skip_content();
  EXPECT_THAT(*paths(*std::move(walk)), ::testing::ElementsAre("c", "c/d"));
}

TEST_F(WalkTest, TooManyEntriesEndTheWalk) {
  for (int i = 0; i < 500; ++i) std::ofstream{folder_.file(std::to_string(i))};
  auto walk = start({.entries_max = 499});
  ASSERT_TRUE(walk.has_value());
  const auto found = paths(*std::move(walk));
  EXPECT_EQ(found.error().code, Errc::path_refused);
  EXPECT_THAT(found.error().message, HasSubstr("more than 499 entries"));
  auto roomy = start({.entries_max = 500});
  ASSERT_TRUE(roomy.has_value());
  EXPECT_EQ(paths(*std::move(roomy))->size(), 500U);
}

TEST_F(WalkTest, WhatIsTooDeepIsRefusedAndTheRestIsFound) {
  Fd at{::open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0700), 0) << i;
    at = Fd{::openat(at.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    ASSERT_TRUE(at) << i;
  }
  std::ofstream{folder_.file("file")} << "x";
  auto walk = start({.depth_max = 100});
  ASSERT_TRUE(walk.has_value());
  const auto found = paths(*std::move(walk));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->size(), 102U) << "100 folders, the one that is too deep, and the file";
  EXPECT_EQ(std::ranges::count_if(*found, [](const auto& path) { return path[0] == '!'; }), 1);
}

TEST_F(WalkTest, AFolderThatMovesAwayMeanwhileIsStillTheOneThatWasEntered) {
  fs::create_directories(folder_.file("a/b"));
  std::ofstream{folder_.file("a/b/inside")} << "x";
  fs::create_directory(folder_.file("outside"));
  const tests::TemporaryFolder elsewhere;
  std::ofstream{elsewhere.file("secret")} << "x";
  auto walk = start();
  ASSERT_TRUE(walk.has_value());
  std::set<std::string> found;
  while (true) {
    auto item = walk->next();
    ASSERT_TRUE(item.has_value()) << item.error().message;
    if (!*item) break;
    found.insert((*item)->path);
    // As soon as "b" is entered, a link to another place replaces it.
    if ((*item)->path == "a/b") {
      fs::rename(folder_.file("a/b"), folder_.file("moved"));
      fs::create_directory_symlink(elsewhere.path(), folder_.file("a/b"));
    }
  }
  EXPECT_TRUE(found.contains("a/b/inside"));
  EXPECT_FALSE(found.contains("a/b/secret"));
}

TEST_F(WalkTest, ATreeInMotionNeverShowsWhatLiesBesideIt) {
  fs::create_directories(folder_.file("a/b/c"));
  const tests::TemporaryFolder elsewhere;
  std::ofstream{elsewhere.file("secret")} << "x";
  fs::create_directory_symlink(elsewhere.path(), folder_.file("link"));
  std::atomic<bool> stop = false;
  std::thread mover{[&] {
    while (!stop) {
      ::renameat2(AT_FDCWD, folder_.file("a/b").c_str(), AT_FDCWD, folder_.file("link").c_str(),
                  RENAME_EXCHANGE);
    }
  }};
  bool escaped = false;
  for (int i = 0; i < 1000; ++i) {
    auto walk = start();
    if (!walk) continue;
    const auto found = paths(*std::move(walk));
    if (!found) continue;
    for (const std::string& path : *found) escaped = escaped || path.ends_with("secret");
  }
  stop = true;
  mover.join();
  EXPECT_FALSE(escaped);
}

}  // namespace
}  // namespace berth::files
