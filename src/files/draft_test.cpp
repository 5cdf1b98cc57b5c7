#include "files/draft.hpp"

#include "base/files.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>

#include <filesystem>
#include <fstream>

namespace berth::files {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DraftTest : public testing::Test {
 protected:
  Result<DraftFolder> make() const { return DraftFolder::in(top_.get(), "place", 1000); }
  static void fill(const DraftFolder& draft) {
    const Fd folder = *draft.open();
    ASSERT_EQ(::mkdirat(folder.get(), "new", 0700), 0);
  }
  std::vector<std::string> names(const std::string& path = "") const {
    return *names_in(folder_.path() + "/" + path);
  }

  const tests::TemporaryFolder folder_;
  const Fd top_{::open(folder_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(DraftTest, AnAbandonedDraftLeavesNothing) {
  {
    const auto draft = make();
    ASSERT_TRUE(draft);
    fill(*draft);
    ASSERT_EQ(names().size(), 1U);
    EXPECT_TRUE(is_draft_name(names().front()));
  }
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DraftTest, AFolderIsPutInPlaceInOneStep) {
  auto draft = make();
  ASSERT_TRUE(draft);
  fill(*draft);
  ASSERT_TRUE(draft->put("place"));
  EXPECT_THAT(names(), ElementsAre("place"));
  EXPECT_THAT(names("place"), ElementsAre("new"));
}

TEST_F(DraftTest, WhatHadTheNameIsReplacedAndNeverFollowed) {
  fs::create_directories(folder_.file("kept/inside"));
  for (const char* kind : {"folder", "file", "link"}) {
    const std::string place = folder_.file("place");
    fs::remove_all(place);
    if (kind == std::string_view{"folder"}) fs::create_directories(place + "/old/deep");
    if (kind == std::string_view{"file"}) std::ofstream{place} << "old";
    if (kind == std::string_view{"link"}) fs::create_directory_symlink("kept", place);
    auto draft = make();
    ASSERT_TRUE(draft);
    fill(*draft);
    const auto put = draft->put("place");
    ASSERT_TRUE(put) << kind << put.error().message;
    EXPECT_THAT(names(), ElementsAre("kept", "place")) << kind;
    EXPECT_THAT(names("place"), ElementsAre("new")) << kind;
    EXPECT_THAT(names("kept"), ElementsAre("inside")) << kind;
  }
}

}  // namespace
}  // namespace berth::files
