#include "places/ssh/control_folder.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <optional>

namespace berth::places::ssh {
namespace {

TEST(ControlFolder, IsPrivateAndGoesWithItsOwner) {
  const tests::TemporaryFolder root;
  const std::string sockets = root.file("s");
  {
    auto folder = ControlFolder::open(sockets);
    ASSERT_TRUE(folder) << folder.error().message;
    struct stat found{};
    ASSERT_EQ(::stat(folder->path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0700U);
    EXPECT_NE(folder->next_socket(), folder->next_socket());
  }
  EXPECT_EQ(names_in(sockets)->size(), 0U);
}

TEST(ControlFolder, AFileOfItLivesAsLongAsItsHolderAndOnlyItsUserReadsIt) {
  const tests::TemporaryFolder root;
  auto folder = ControlFolder::open(root.file("s"));
  ASSERT_TRUE(folder);
  std::optional<ShortLivedFile> file{folder->write("key\n").value()};
  const std::string path = file->get();
  struct stat found{};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_EQ(read_file(path, 100).value(), "key\n");
  file.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ControlFolder, WhatADeadServerLeftIsRemovedAndWhatALivingOneHasIsNot) {
  const tests::TemporaryFolder root;
  const std::string sockets = root.file("s");
  auto living = ControlFolder::open(sockets);
  ASSERT_TRUE(living);
  ASSERT_EQ(::mkdir((sockets + "/dead").c_str(), 0700), 0);
  ASSERT_TRUE(create_file(sockets + "/dead/1", "a key", 0600));
  auto next = ControlFolder::open(sockets);
  ASSERT_TRUE(next);
  EXPECT_FALSE(std::filesystem::exists(sockets + "/dead"));
  EXPECT_TRUE(std::filesystem::exists(living->path()));
}

TEST(ControlFolder, AFolderThatOthersMayEnterIsRefused) {
  const tests::TemporaryFolder root;
  const std::string sockets = root.file("s");
  ASSERT_EQ(::mkdir(sockets.c_str(), 0755), 0);
  ::chmod(sockets.c_str(), 0755);
  EXPECT_EQ(ControlFolder::open(sockets).error().code, Errc::config_invalid);
}

TEST(ControlFolder, ARootThatDoesNotSuitSshHasAShortSubstitute) {
  const tests::TemporaryFolder root;
  for (const std::string& unsuited :
       {root.file(std::string(80, 'x')), root.file("a b"), root.file("100%h"), root.file("~")}) {
    std::string parent;
    {
      auto folder = ControlFolder::open(unsuited);
      ASSERT_TRUE(folder) << folder.error().message;
      parent = parent_of(folder->path());
      EXPECT_NE(parent, unsuited);
      EXPECT_LT(folder->next_socket().size() + 17, 108U);
      auto second = ControlFolder::open(unsuited);
      ASSERT_TRUE(second) << second.error().message;
      EXPECT_EQ(parent_of(second->path()), parent) << "or leftovers are not found";
    }
    std::filesystem::remove(parent);
  }
}

}  // namespace
}  // namespace berth::places::ssh
