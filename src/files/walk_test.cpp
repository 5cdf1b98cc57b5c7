#include "workspaces/walk.hpp"

#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

namespace berth::workspaces {
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
  const std::set<std::string> expected = {"a", "a/b", "a/b/c", "a/b/file", "a/up", "d"};
  EXPECT_EQ(std::set<std::string>(found->begin(), found->end()), expected);
  EXPECT_EQ(found->size(), expected.size());
  std::set<std::string> seen;
  for (const std::string& path : *found) {
    const std::string parent = fs::path{path}.parent_path();
    EXPECT_TRUE(parent.empty() || seen.contains(parent)) << path;
    seen.insert(path);
  }
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
}  // namespace berth::workspaces
