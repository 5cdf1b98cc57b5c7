#include "workspaces/archive_in.hpp"

#include "support/archive_fixture.hpp"
#include "support/full_disk.hpp"
#include "support/tar.hpp"

namespace berth::workspaces {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using tests::Tar;

class ArchiveInTest : public tests::ArchiveFixture {
 protected:
  Result<Unpacked> unpack(const std::string& bytes, const UnpackOptions& options = {},
                          Limits limits = {}) const {
    return archive_in(open(root_, limits), "", pieces_of(bytes), options);
  }
  // Refused for that reason, with nothing of the archive left.
  void expect_refused(const Tar& tar, std::string_view rule, const UnpackOptions& options = {},
                      Limits limits = {}) const {
    const auto before = described(root_);
    const auto unpacked = unpack(tar.bytes(), options, limits);
    ASSERT_FALSE(unpacked.has_value()) << rule;
    EXPECT_EQ(unpacked.error().code, Errc::path_refused) << unpacked.error().message;
    EXPECT_THAT(unpacked.error().message, HasSubstr(std::string{rule}));
    EXPECT_EQ(described(root_), before);
  }
};

TEST_F(ArchiveInTest, GzipAndZstdAreUnpacked) {
  const std::string tar = Tar{}.file("a/file", "text").bytes();
  ASSERT_TRUE(unpack(compressed(tar, ::archive_write_add_filter_gzip)).has_value());
  EXPECT_EQ(content(in("a/file")), "text");
  fs::remove_all(in("a"));
  ASSERT_TRUE(unpack(compressed(tar, ::archive_write_add_filter_zstd)).has_value());
  EXPECT_EQ(content(in("a/file")), "text");
}

TEST_F(ArchiveInTest, PathsThatLeaveAreRefused) {
  expect_refused(Tar{}.file("good", "x").file("../evil", "x"), "'../evil': holds '..'");
  expect_refused(Tar{}.file("a/../../evil", "x"), "holds '..'");
  expect_refused(Tar{}.file("/evil", "x"), "is absolute");
  expect_refused(Tar{}.folder("../evil"), "holds '..'");
  expect_refused(Tar{}.extended({{"path", "a/../../evil"}}).file("good", "x"), "holds '..'");
  expect_refused(Tar{}.extended({{"path", std::string(300, 'n')}}).file("x", ""), "255 bytes");
  expect_refused(Tar{}.extended({{"path", std::string(5000, 'n')}}).file("x", ""), "4095 bytes");
}

TEST_F(ArchiveInTest, AFileIsNotWrittenThroughALinkOfTheArchive) {
  const UnpackOptions any{.links = LinkRule::any};
  expect_refused(Tar{}.symbolic_link("way", outside_).file("way/evil", "x"), "link", any);
  expect_refused(Tar{}.symbolic_link("way", ".").file("way/evil", "x"), "link");
  expect_refused(Tar{}.symbolic_link("way", ".").folder("way/evil"), "link");
  // A file with the link's own name replaces the link.
  const Tar twice = Tar{}.symbolic_link("file", outside_ + "/secret").file("file", "mine");
  ASSERT_TRUE(unpack(twice.bytes(), any).has_value());
  EXPECT_EQ(content(in("file")), "mine");
  EXPECT_FALSE(fs::is_symlink(in("file")));
}

TEST_F(ArchiveInTest, AFileIsNotWrittenThroughALinkOfTheTree) {
  fs::create_symlink(outside_, in("way"));
  expect_refused(Tar{}.file("way/evil", "x"), "is there and no directory");
  const std::string tar = Tar{}.file("evil", "x").bytes();
  EXPECT_EQ(archive_in(open(root_), "way", pieces_of(tar)).error().code, Errc::path_refused);
}

TEST_F(ArchiveInTest, OnlyLinksThatStayInsideAreMade) {
  expect_refused(Tar{}.symbolic_link("l", "/etc/passwd"), "absolute path");
  expect_refused(Tar{}.symbolic_link("l", "../outside"), "leads out of the root");
  expect_refused(Tar{}.symbolic_link("a/b/l", "../../../outside"), "leads out of the root");
  // By its text the second link remains inside; followed through the first it does not.
  expect_refused(Tar{}.symbolic_link("a/b/up", "../..").symbolic_link("l", "a/b/up/.."),
                 "behind a name");
  expect_refused(Tar{}.symbolic_link("l", "file"), "is a symbolic link",
                 {.links = LinkRule::refused});
  const auto refused =
      unpack(Tar{}.symbolic_link("l", "/etc/passwd").bytes(), {.link_remedy = "what can be done"});
  EXPECT_EQ(refused.error().remedy, "what can be done");
  ASSERT_TRUE(unpack(Tar{}.symbolic_link("a/b/l", "../../x/./y").bytes()).has_value());
  EXPECT_EQ(fs::read_symlink(in("a/b/l")), "../../x/./y");
  // A link deeper in the root may lead further up.
  const std::string up = Tar{}.symbolic_link("l", "../x").bytes();
  EXPECT_TRUE(archive_in(open(root_), "sub", pieces_of(up)).has_value());
}

TEST_F(ArchiveInTest, HardLinksLeadToFilesOfTheSameArchiveOnly) {
  put(in("before"), "x");
  expect_refused(Tar{}.hard_link("l", "before"), "not in the archive before it");
  expect_refused(Tar{}.hard_link("l", "../outside/secret"), "holds '..'");
  expect_refused(Tar{}.hard_link("l", outside_ + "/secret"), "is absolute");
  expect_refused(Tar{}.folder("d").hard_link("l", "d"), "not a regular file");
  const Tar two_steps =
      Tar{}.symbolic_link("s", outside_ + "/secret").hard_link("l", "s").file("l", "evil");
  expect_refused(two_steps, "not a regular file", {.links = LinkRule::any});
  ASSERT_TRUE(unpack(Tar{}.file("a", "text").hard_link("b", "a").bytes()).has_value());
  EXPECT_TRUE(fs::equivalent(in("a"), in("b")));
  EXPECT_EQ(content(in("b")), "text");
}

TEST_F(ArchiveInTest, DevicesAndPipesAreRefused) {
  expect_refused(Tar{}.add({.path = "null", .type = '3'}), "is a device");
  expect_refused(Tar{}.add({.path = "disk", .type = '4'}), "is a device");
  expect_refused(Tar{}.add({.path = "pipe", .type = '6'}), "a pipe");
}

TEST_F(ArchiveInTest, SetIdBitsAreDroppedAndCounted) {
  const auto unpacked = unpack(Tar{}.file("tool", "x", 06755).folder("d", 01777).bytes());
  ASSERT_TRUE(unpacked.has_value());
  EXPECT_EQ(unpacked->set_id_bits_dropped, 2U);
  struct stat status{};
  ASSERT_EQ(::stat(in("tool").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0755U);
}

TEST_F(ArchiveInTest, EverythingBelongsToTheOwnerThatWasGiven) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const Tar tar = Tar{}.file("a/file", "x").symbolic_link("a/link", "file").folder("b");
  ASSERT_TRUE(unpack(tar.bytes(), {.owner = Owner{.uid = 4321, .gid = 5432}}).has_value());
  for (const std::string name : {"a", "a/file", "a/link", "b"}) {
    struct stat status{};
    ASSERT_EQ(::lstat(in(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 4321U) << name;
    EXPECT_EQ(status.st_gid, 5432U) << name;
  }
}

TEST_F(ArchiveInTest, LimitsEndAnArchiveAndLeaveNothing) {
  const Tar three = Tar{}.file("a", "1234").file("b", "1234").file("c/d", "1234");
  expect_refused(three, "is one of more than 2", {}, {.entries_max = 2});
  expect_refused(three, "larger than 10 bytes", {}, {.bytes_max = 10});
  expect_refused(three, "more than 3 bytes", {}, {.file_bytes_max = 3});
  expect_refused(Tar{}.file("a/b/c/d", ""), "deeper than 3", {}, {.depth_max = 3});
  expect_refused(Tar{}.folder("a").folder("b"), "one folder too many", {},
                 {.folder_names_bytes_max = 200});
  EXPECT_TRUE(unpack(three.bytes(), {}, {.entries_max = 3, .bytes_max = 12}).has_value());
}

TEST_F(ArchiveInTest, ASparseEntryCountsWithItsHoles) {
  const Tar sparse = Tar{}
                         .extended({{"GNU.sparse.major", "1"},
                                    {"GNU.sparse.minor", "0"},
                                    {"GNU.sparse.name", "huge"},
                                    {"GNU.sparse.realsize", "1099511627776"}})
                         .file("huge", "0\n" + std::string(510, '\0'));
  expect_refused(sparse, "has more than");
}

TEST_F(ArchiveInTest, ABombIsRefusedWhileItUnpacks) {
  const std::string tar = Tar{}.file("zeros", std::string(8 << 20, '\0')).bytes();
  const std::string bomb = compressed(tar, ::archive_write_add_filter_gzip);
  ASSERT_LT(bomb.size(), 20'000U);
  const auto unpacked = unpack(bomb, {}, {.growth_free_bytes = 1 << 20});
  EXPECT_EQ(unpacked.error().code, Errc::path_refused);
  EXPECT_THAT(unpacked.error().message, HasSubstr("200 times its size"));
  EXPECT_THAT(described(root_), IsEmpty());
  EXPECT_TRUE(unpack(bomb).has_value()) << "small enough not to matter";
}

TEST_F(ArchiveInTest, AHeaderThatNeverEndsIsNoTar) {
  Tar tar;
  tar.add({.path = "pax", .type = 'x', .bytes = 1ULL << 32});
  tar.body(std::string(2 << 20, 'h'));
  EXPECT_EQ(unpack(tar.bytes()).error().code, Errc::unprocessable);
  EXPECT_THAT(described(root_), IsEmpty());
}

TEST_F(ArchiveInTest, WhatIsNoWholeTarIsUnprocessableAndLeavesNothing) {
  const std::string whole = Tar{}.file("a", "x").file("b", std::string(5000, 'y')).bytes();
  const std::string zipped = compressed(whole, ::archive_write_add_filter_gzip);
  for (const std::string& bytes : {std::string{"not a tar at all"}, whole.substr(0, 3000),
                                   zipped.substr(0, zipped.size() / 2)}) {
    const auto unpacked = unpack(bytes);
    ASSERT_FALSE(unpacked.has_value()) << bytes.size();
    EXPECT_EQ(unpacked.error().code, Errc::unprocessable) << unpacked.error().message;
    EXPECT_THAT(described(root_), IsEmpty());
  }
}

TEST_F(ArchiveInTest, ASourceThatFailsLeavesNothing) {
  const std::string whole = Tar{}.file("a", "x").file("b", std::string(5000, 'y')).bytes();
  const ByteSource broken = [&, calls = 0]() mutable -> Result<std::string_view> {
    if (++calls == 1) return std::string_view{whole}.substr(0, 3000);
    return fail(Errc::cancelled, "the client left");
  };
  EXPECT_EQ(archive_in(open(root_), "new/folder", broken).error().code, Errc::cancelled);
  EXPECT_THAT(described(root_), IsEmpty());
}

TEST_F(ArchiveInTest, AFullDiskInTheMiddleLeavesNothing) {
  put(in("kept"), "old");
  const std::string tar = Tar{}.folder("d").file("d/kept", "new").file("kept", "new").bytes();
  Result<Unpacked> unpacked;
  {
    const tests::FullDisk full;
    unpacked = unpack(tar);
  }
  ASSERT_FALSE(unpacked.has_value());
  EXPECT_EQ(unpacked.error().code, Errc::store_full);
  EXPECT_EQ(content(in("kept")), "old");
  EXPECT_THAT(described(root_), SizeIs(1));
}

TEST_F(ArchiveInTest, AnArchiveJoinsWhatIsThere) {
  fs::create_directories(in("a/b"));
  fs::permissions(in("a"), fs::perms{0711});
  put(in("a/old"), "old");
  put(in("a/b/same"), "old");
  fs::create_symlink("old", in("a/link"));
  const Tar tar = Tar{}
                      .folder("a", 0500)
                      .file("a/b/same", "new")
                      .file("a/new", "new")
                      .symbolic_link("a/link", "new")
                      .file("a/c/deep", "new");
  const auto unpacked = unpack(tar.bytes());
  ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message;
  EXPECT_EQ(content(in("a/old")), "old");
  EXPECT_EQ(content(in("a/b/same")), "new");
  EXPECT_EQ(content(in("a/new")), "new");
  EXPECT_EQ(content(in("a/c/deep")), "new");
  EXPECT_EQ(fs::read_symlink(in("a/link")), "new");
  struct stat status{};
  ASSERT_EQ(::stat(in("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0711U);
  EXPECT_THAT(described(root_), SizeIs(8));
}

TEST_F(ArchiveInTest, AThingInTheWayStopsAllOfIt) {
  put(in("file"), "old");
  fs::create_directory(in("folder"));
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  expect_refused(Tar{}.file("first", "x").file("file/below", "x"), "is there and no directory");
  expect_refused(Tar{}.file("first", "x").file("folder", "x"), "is there as a directory");
  expect_refused(Tar{}.file("first", "x").file("pipe", "x"), "neither file nor link");
  expect_refused(Tar{}.file("a", "x").file("a/b", "x"), "a file of the archive");
  expect_refused(Tar{}.folder("a").file("a", "x"), "has a directory");
}

}  // namespace
}  // namespace berth::workspaces
