#include "plugins/folder_use.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::plugins {
namespace {

class FolderUseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "folder-use-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, std::size_t bytes) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path} << std::string(bytes, 'x');
  }

  std::string folder_;
};

TEST_F(FolderUseTest, CountsWhatLiesBelowAndFollowsNoLink) {
  write("a", 100'000);
  write("deep/er/b", 100'000);
  std::filesystem::create_symlink("/usr", folder_ + "/link");
  const auto use = measure_folder(folder_, {});
  ASSERT_TRUE(use) << use.error().message;
  EXPECT_EQ(use->files, 5);
  EXPECT_GE(use->bytes, 200'000);
  EXPECT_LT(use->bytes, 1'000'000);
}

TEST_F(FolderUseTest, NamesTheLimitThatIsPassed) {
  write("a", 3 << 20);
  write("b", 1);
  EXPECT_EQ(why_too_much(measure_folder(folder_, {}), {}), std::nullopt);
  const FolderUse bytes{.bytes = 1 << 20};
  EXPECT_EQ(why_too_much(measure_folder(folder_, bytes), bytes),
            "its own folder holds more than 1 MB");
  const FolderUse files{.files = 1};
  EXPECT_EQ(why_too_much(measure_folder(folder_, files), files),
            "its own folder holds more than 1 files");
}

TEST_F(FolderUseTest, AFolderThatIsGoneHoldsNothing) {
  const auto use = measure_folder(folder_ + "/none", {});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->files, 0);
}

}  // namespace
}  // namespace berth::plugins
