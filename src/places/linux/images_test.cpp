#include "places/linux/images.hpp"

#include "images/image_store.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::places {
namespace {

namespace fs = std::filesystem;

class Held : public testing::Test {
 protected:
  Held() : store(images::ImageStore::open(folder.file("images")).value()) {
    fs::create_directory(folder.file("tree"));
    std::ofstream{folder.file("tree/file")} << "x";
    image = store.import(folder.file("tree"), "a").value();
    config.image = "a";
  }

  tests::TemporaryFolder folder;
  images::ImageStore store;
  images::Image image;
  core::LinuxConfig config;
};

TEST_F(Held, WhatIsHeldForAServerStaysUntilItIsReleased) {
  {
    ASSERT_TRUE(HeldImages(folder.file("images"), folder.file("templates")).hold(config, "one"));
  }
  EXPECT_EQ(store.remove("a").error().code, Errc::image_in_use);
  ASSERT_TRUE(HeldImages(folder.file("images"), folder.file("templates")).release("one"));
  EXPECT_TRUE(store.remove("a"));
}

TEST_F(Held, WhatIsHeldForAProcessGoesWithIt) {
  {
    const HeldImages held{folder.file("images"), folder.file("templates"), HoldLife::of_process};
    ASSERT_TRUE(held.hold(config, "one"));
    EXPECT_EQ(store.remove("a").error().code, Errc::image_in_use);
    EXPECT_TRUE(store.find("a")->holders.empty()) << "nobody could ever release it";
    ASSERT_TRUE(held.hold(config, "two"));
    ASSERT_TRUE(held.release("one"));
    EXPECT_EQ(store.remove("a").error().code, Errc::image_in_use);
  }
  EXPECT_TRUE(store.remove("a"));
}

TEST_F(Held, WhoHoldsNothingNeedsNoStore) {
  // A file in place of the folder: no process can open a store there, not even root.
  std::ofstream{folder.file("blocked")} << "x";
  const HeldImages held{folder.file("blocked"), folder.file("templates"), HoldLife::of_process};
  EXPECT_TRUE(held.hold({}, "one"));
  EXPECT_TRUE(held.release("one"));
}

}  // namespace
}  // namespace berth::places
