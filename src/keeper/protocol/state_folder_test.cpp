#include "keeper/protocol/state_folder.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <filesystem>

namespace berth::keeper {
namespace {

class StateFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/berth-state-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  std::string text(const std::string& name) const {
    return read_file(at(name), 1000).value_or("nothing");
  }

 private:
  std::string folder_;
};

TEST_F(StateFolder, AShorterTextReplacesALongerOneWhole) {
  ASSERT_TRUE(Draft{at("record")}.publish("a long text"));
  ASSERT_TRUE(Draft{at("record")}.publish("short"));
  EXPECT_EQ(text("record"), "short");
  EXPECT_FALSE(std::filesystem::exists(at("record.new")));
}

TEST_F(StateFolder, ADraftThatSomebodyLeftIsWrittenOver) {
  ASSERT_TRUE(create_file(at("record.new"), "of a process that was killed", 0600));
  ASSERT_TRUE(Draft{at("record")}.publish("short"));
  EXPECT_EQ(text("record"), "short");
}

TEST_F(StateFolder, AfterAnAttemptInVainNothingOfItIsPublished) {
  Draft draft{at("record")};
  draft.reserve();
  std::filesystem::create_directory(at("record"));  // a file cannot replace it
  EXPECT_FALSE(draft.publish("a long text"));
  std::filesystem::remove(at("record"));
  ASSERT_TRUE(draft.publish("short"));
  EXPECT_EQ(text("record"), "short");
}

TEST_F(StateFolder, WhatIsOnlyReservedIsNotPublished) {
  Draft draft{at("record")};
  draft.reserve();
  EXPECT_EQ(text("record"), "nothing");
}

TEST_F(StateFolder, ARootIsMadeOnceAndMarkedWhereTheFileSystemKnowsThat) {
  const std::string root = at("a/b");
  ASSERT_TRUE(make_state_root(root));
  ASSERT_TRUE(make_state_root(root));
  const Fd folder{::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  ASSERT_TRUE(folder);
  int flags = 0;
  if (::ioctl(folder.get(), FS_IOC_GETFLAGS, &flags) != 0) GTEST_SKIP() << "no flags here";
  int wanted = flags | FS_TOPDIR_FL;
  if (::ioctl(folder.get(), FS_IOC_SETFLAGS, &wanted) != 0) GTEST_SKIP() << "not this flag here";
  EXPECT_EQ(flags & FS_TOPDIR_FL, FS_TOPDIR_FL);
}

}  // namespace
}  // namespace berth::keeper
