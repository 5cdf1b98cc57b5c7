#include "images/template_store.hpp"

#include "base/files.hpp"
#include "files/beneath.hpp"
#include "support/tar.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::images {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

class Templates : public testing::Test {
 protected:
  Templates()
      : image_store(ImageStore::open(folder.file("images")).value()),
        store(TemplateStore::open(folder.file("templates"), image_store).value()) {
    fs::create_directory(upper());
  }

  std::string upper() const { return folder.file("upper"); }
  std::string at(const std::string& path) const { return upper() + "/" + path; }
  Result<Template> capture(const CaptureRequest& request) const {
    const Fd from{::open(upper().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    return store.capture(from.get(), request);
  }
  static OverlayMarks own_marks() {
    return ::geteuid() == 0 ? OverlayMarks::trusted : OverlayMarks::user;
  }
  std::string copied(const Template& made, const std::string& path) const {
    return store.layers_of(made)->front() + "/" + path;
  }
  std::string image() const {
    std::ofstream{folder.file("a.tar")} << tests::Tar{}.file("f", "x").bytes();
    return image_store.import(folder.file("a.tar"), "a").value().digest;
  }

  tests::TemporaryFolder folder;
  ImageStore image_store;
  TemplateStore store;
};

TEST_F(Templates, FilesModesLinksAndHolesAreKept) {
  std::ofstream{at("f")} << "content";
  fs::create_hard_link(at("f"), at("g"));
  fs::create_symlink("f", at("l"));
  ASSERT_EQ(::chmod(at("f").c_str(), 0751), 0);
  std::ofstream{at("sparse")} << "x";
  fs::resize_file(at("sparse"), 16 << 20);
  const auto made = capture({.name = "first", .base_image = "host"});
  ASSERT_TRUE(made) << made.error().message;
  struct stat file{};
  struct stat other{};
  struct stat sparse{};
  ASSERT_EQ(::lstat(copied(*made, "f").c_str(), &file), 0);
  ASSERT_EQ(::lstat(copied(*made, "g").c_str(), &other), 0);
  ASSERT_EQ(::lstat(copied(*made, "sparse").c_str(), &sparse), 0);
  EXPECT_EQ(file.st_mode & 07777, 0751U);
  EXPECT_EQ(file.st_ino, other.st_ino);
  EXPECT_EQ(fs::read_symlink(copied(*made, "l")), "f");
  EXPECT_LT(sparse.st_blocks, 1024);
  EXPECT_EQ(read_file(copied(*made, "f"), 100).value(), "content");
  EXPECT_EQ(store.find("first")->id, made->id);
}

TEST_F(Templates, WhatTheSandboxDeletedStaysDeleted) {
  // Any user may make a whiteout since Linux 5.8.
  ASSERT_EQ(::mknod(at("gone").c_str(), S_IFCHR, makedev(0, 0)), 0);
  fs::create_directory(at("opaque"));
  const char* name = ::geteuid() == 0 ? "trusted.overlay.opaque" : "user.overlay.opaque";
  if (::setxattr(at("opaque").c_str(), name, "y", 1, 0) != 0) {
    GTEST_SKIP() << "the temporary folder keeps no such attribute";
  }
  const auto made = capture({.name = "t", .base_image = "host", .marks = own_marks()});
  ASSERT_TRUE(made) << made.error().message;
  struct stat gone{};
  ASSERT_EQ(::lstat(copied(*made, "gone").c_str(), &gone), 0);
  EXPECT_TRUE(S_ISCHR(gone.st_mode));
  EXPECT_EQ(gone.st_rdev, makedev(0, 0));
  char value = 0;
  EXPECT_EQ(::getxattr(copied(*made, "opaque").c_str(), name, &value, 1), 1);
  EXPECT_EQ(value, 'y');
}

// Runs in its own mount namespace, which ends with the child. The result is the step that failed.
int lay_and_capture(const std::string& folder, const TemplateStore& store) {
  const auto mount_overlay = [&](const std::string& options) {
    return ::mount("overlay", (folder + "/merged").c_str(), "overlay", 0, options.c_str()) == 0;
  };
  const std::string merged = folder + "/merged/";
  if (::unshare(CLONE_NEWNS) != 0) return 77;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (!mount_overlay("lowerdir=" + folder + "/lower,upperdir=" + folder +
                     "/upper,workdir=" + folder + "/work")) {
    return 77;
  }
  fs::remove(merged + "gone");
  fs::remove_all(merged + "emptied");
  fs::create_directory(merged + "emptied");
  std::ofstream{merged + "kept"} << "changed";
  if (::umount((folder + "/merged").c_str()) != 0) return 1;

  const Fd upper{::open((folder + "/upper").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  const auto made = store.capture(upper.get(), {.name = "t", .base_image = "host"});
  if (!made) return 2;
  if (!mount_overlay("lowerdir=" + store.layers_of(*made)->front() + ":" + folder + "/lower")) {
    return 3;
  }
  if (fs::exists(merged + "gone")) return 4;
  if (!fs::exists(merged + "emptied") || !fs::is_empty(merged + "emptied")) return 5;
  return read_file(merged + "kept", 100).value_or("") == "changed" ? 0 : 6;
}

TEST_F(Templates, LaidOnTheImageAgainATemplateIsWhatTheSandboxSaw) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const tests::TemporaryFolder place;
  for (const char* each : {"lower", "lower/emptied", "work", "upper", "merged"}) {
    fs::create_directory(place.file(each));
  }
  for (const char* each : {"lower/gone", "lower/kept", "lower/emptied/inside"}) {
    std::ofstream{place.file(each)} << "of the image";
  }
  const pid_t child = ::fork();
  if (child == 0) ::_exit(lay_and_capture(place.path(), store));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no overlayfs on the temporary folder";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the number of the step that failed";
}

TEST_F(Templates, ALayerWhoseContentIsElsewhereIsRefused) {
  fs::create_directory(at("moved"));
  const char* name = ::geteuid() == 0 ? "trusted.overlay.redirect" : "user.overlay.redirect";
  if (::setxattr(at("moved").c_str(), name, "/old", 4, 0) != 0) {
    GTEST_SKIP() << "the temporary folder keeps no such attribute";
  }
  const auto made = capture({.name = "t", .base_image = "host", .marks = own_marks()});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("another layer"));
  EXPECT_TRUE(fs::is_empty(folder.file("templates/drafts")));
}

TEST_F(Templates, WhatTheSandboxHasCalledAMarkKeepsNobodyFromCapturingIt) {
  std::ofstream{at("f")} << "content";
  const auto set = [&](const char* name) {
    return ::setxattr(at("f").c_str(), name, "y", 1, 0) == 0;
  };
  if (!set("user.overlay.redirect") || !set("user.overlay.metacopy") || !set("user.k")) {
    GTEST_SKIP() << "the temporary folder keeps no such attribute";
  }
  const auto has = [&](const Template& made, const char* name) {
    return ::getxattr(copied(made, "f").c_str(), name, nullptr, 0) == 1;
  };
  const auto by_root =
      capture({.name = "by root", .base_image = "host", .marks = OverlayMarks::trusted});
  ASSERT_TRUE(by_root) << by_root.error().message;
  EXPECT_TRUE(has(*by_root, "user.overlay.redirect")) << "there it is like any other";
  const auto by_none =
      capture({.name = "without an overlay", .base_image = "host", .marks = OverlayMarks::none});
  ASSERT_TRUE(by_none) << by_none.error().message;
  EXPECT_FALSE(has(*by_none, "user.overlay.redirect")) << "the next overlay would believe it";
  EXPECT_TRUE(has(*by_none, "user.k"));
  for (const char* name : {"user.overlay.redirect", "user.overlay.metacopy"}) {
    ASSERT_EQ(::removexattr(at("f").c_str(), name), 0);
  }
  ASSERT_TRUE(set("user.overlay.overlay.redirect"));
  const auto by_user =
      capture({.name = "by a user", .base_image = "host", .marks = OverlayMarks::user});
  ASSERT_TRUE(by_user) << by_user.error().message;
  EXPECT_TRUE(has(*by_user, "user.overlay.overlay.redirect")) << "as the kernel keeps it";
}

TEST_F(Templates, SocketsAndPipesAreLeftOut) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  ASSERT_EQ(::mknod(at("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  const auto made = capture({.name = "t", .base_image = "host"});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(fs::is_empty(copied(*made, "")));
}

TEST_F(Templates, IdsAreThoseTheSandboxSaw) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  for (const auto& [name, id] : {std::pair{"inside", 100'033U}, {"root", 100'000U}, {"odd", 7U}}) {
    std::ofstream{at(name)} << "";
    ASSERT_EQ(::chown(at(name).c_str(), id, id), 0);
  }
  const auto made = capture({.name = "t", .base_image = "host", .ids = {.first = 100'000}});
  ASSERT_TRUE(made) << made.error().message;
  const auto owner = [&](const std::string& path) {
    struct stat seen{};
    EXPECT_EQ(::lstat(copied(*made, path).c_str(), &seen), 0);
    return seen.st_uid;
  };
  EXPECT_EQ(owner("inside"), 33U);
  EXPECT_EQ(owner("root"), 0U);
  EXPECT_EQ(owner("odd"), 65534U);
}

TEST_F(Templates, AnImageStaysWhileATemplateStandsOnIt) {
  const std::string digest = image();
  const auto made = capture({.name = "t", .base_image = digest});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(image_store.remove("a").error().code, Errc::image_in_use);
  ASSERT_TRUE(store.remove("t"));
  EXPECT_THAT(image_store.find("a")->holders, IsEmpty());
  EXPECT_TRUE(image_store.remove("a"));
}

TEST_F(Templates, HoldsThatACrashLeftAreReleasedAndOthersStay) {
  const std::string digest = image();
  const auto made = capture({.name = "t", .base_image = digest});
  ASSERT_TRUE(made) << made.error().message;
  const std::string stale = "template-01999999-0000-7000-8000-000000000000";
  ASSERT_TRUE(image_store.hold(digest, stale));
  ASSERT_TRUE(image_store.hold(digest, "lease-1"));
  ASSERT_TRUE(store.hold(made->id, stale));
  ASSERT_TRUE(store.gc());
  EXPECT_THAT(image_store.find("a")->holders, ElementsAre("lease-1", "template-" + made->id));
  EXPECT_TRUE(store.remove("t"));
}

TEST_F(Templates, AChainIsBoundedAndCannotBeCutBelow) {
  std::optional<std::string> parent;
  for (std::uint32_t depth = 1; depth <= template_depth_max; ++depth) {
    const std::string name = "t" + std::to_string(depth);
    const auto made = capture({.name = name, .base_image = "host", .parent = parent});
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->depth, depth);
    EXPECT_EQ(store.layers_of(*made)->size(), depth);
    parent = made->id;
  }
  const auto more = capture({.name = "more", .base_image = "host", .parent = parent});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Errc::conflict);
  EXPECT_EQ(store.remove("t1").error().code, Errc::image_in_use);
  EXPECT_TRUE(store.remove("t16"));
  EXPECT_TRUE(store.remove("t15")) << "nothing stands on it any more";
}

TEST_F(Templates, AParentOnAnotherImageIsRefused) {
  const auto first = capture({.name = "first", .base_image = "host"});
  ASSERT_TRUE(first);
  EXPECT_EQ(capture({.name = "t", .base_image = image(), .parent = "first"}).error().code,
            Errc::conflict);
}

TEST_F(Templates, ANameIsTakenOnceAndWhatIsMissingIsNotFound) {
  ASSERT_TRUE(capture({.name = "t", .base_image = "host"}));
  EXPECT_EQ(capture({.name = "t", .base_image = "host"}).error().code, Errc::conflict);
  EXPECT_EQ(store.find("u").error().code, Errc::template_not_found);
  EXPECT_NE(store.find("u").error().remedy, "");
  EXPECT_EQ(store.remove("u").error().code, Errc::template_not_found);
  EXPECT_EQ(capture({.name = "v", .base_image = "nothing"}).error().code, Errc::image_not_found);
  EXPECT_EQ(capture({.name = "w", .base_image = "host", .parent = "u"}).error().code,
            Errc::template_not_found);
  EXPECT_EQ(store.list()->size(), 1U);
}

TEST_F(Templates, AHeldTemplateStays) {
  const auto made = capture({.name = "t", .base_image = "host"});
  ASSERT_TRUE(made);
  ASSERT_TRUE(store.hold(made->id, "lease-1"));
  const auto refused = store.remove("t");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().facts.at("holders"), ElementsAre("lease-1"));
  ASSERT_TRUE(store.release(made->id, "lease-1"));
  EXPECT_TRUE(store.remove("t"));
}

}  // namespace
}  // namespace berth::images
