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

// HostileArchive has the rules; here one entry of each kind leaves nothing behind.
TEST_F(ArchiveInTest, ARefusedArchiveLeavesNothing) {
  const UnpackOptions any{.links = LinkRule::any};
  put(in("before"), "x");
  expect_refused(Tar{}.file("good", "x").file("../evil", "x"), "'../evil': holds '..'");
  expect_refused(Tar{}.file("good", "x").file("/evil", "x"), "is absolute");
  expect_refused(Tar{}.symbolic_link("way", outside_).file("way/evil", "x"), "link", any);
  expect_refused(Tar{}.file("good", "x").hard_link("l", outside_ + "/secret"), "is absolute");
  expect_refused(Tar{}.file("good", "x").hard_link("l", "before"), "not in the tree before it");
  expect_refused(Tar{}.symbolic_link("s", outside_ + "/secret").hard_link("l", "s").file("l", "e"),
                 "not a regular file", any);
  expect_refused(Tar{}.file("good", "x").add({.path = "null", .type = '3'}), "is a device");
  expect_refused(Tar{}.file("a", "x").file("b/c", "1234"), "more than 3 bytes", {},
                 {.file_bytes_max = 3});
}

TEST_F(ArchiveInTest, LinksFollowTheRuleThatWasChosen) {
  expect_refused(Tar{}.symbolic_link("l", "../outside"), "leads out of the root");
  expect_refused(Tar{}.symbolic_link("l", "file"), "is a symbolic link",
                 {.links = LinkRule::refused});
  const auto refused =
      unpack(Tar{}.symbolic_link("l", "/etc/passwd").bytes(), {.link_remedy = "what can be done"});
  EXPECT_EQ(refused.error().remedy, "what can be done");
  // A link deeper in the root may lead further up.
  const std::string up = Tar{}.symbolic_link("l", "../x").bytes();
  EXPECT_TRUE(archive_in(open(root_), "sub", pieces_of(up)).has_value());
}

TEST_F(ArchiveInTest, HardLinksAndDroppedBitsAreReported) {
  const Tar tar = Tar{}.file("a", "text", 06755).hard_link("b", "a").folder("d", 01777);
  const auto unpacked = unpack(tar.bytes());
  ASSERT_TRUE(unpacked.has_value()) << unpacked.error().message;
  EXPECT_TRUE(fs::equivalent(in("a"), in("b")));
  EXPECT_EQ(unpacked->set_id_bits_dropped, 2U);
  EXPECT_EQ(unpacked->entries, 3U);
  EXPECT_EQ(unpacked->bytes, 4U);
}

TEST_F(ArchiveInTest, AFileIsNotWrittenThroughALinkOfTheTree) {
  fs::create_symlink(outside_, in("way"));
  expect_refused(Tar{}.file("way/evil", "x"), "is there and not a directory");
  const std::string tar = Tar{}.file("evil", "x").bytes();
  EXPECT_EQ(archive_in(open(root_), "way", pieces_of(tar)).error().code, Errc::path_refused);
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

TEST_F(ArchiveInTest, ABombOrAnIncompleteTarLeavesNothing) {
  const std::string zeros = Tar{}.file("zeros", std::string(8 << 20, '\0')).bytes();
  const std::string bomb = compressed(zeros, ::archive_write_add_filter_gzip);
  ASSERT_LT(bomb.size(), 20'000U);
  const auto unpacked = unpack(bomb, {}, {.growth_free_bytes = 1 << 20});
  EXPECT_EQ(unpacked.error().code, Errc::path_refused);
  EXPECT_THAT(described(root_), IsEmpty());
  const std::string whole = Tar{}.file("a", "x").file("b", std::string(5000, 'y')).bytes();
  const std::string zipped = compressed(whole, ::archive_write_add_filter_gzip);
  for (const std::string& bytes : {std::string{"not a tar at all"}, whole.substr(0, 3000),
                                   zipped.substr(0, zipped.size() / 2)}) {
    const auto broken = unpack(bytes);
    ASSERT_FALSE(broken.has_value()) << bytes.size();
    EXPECT_EQ(broken.error().code, Errc::unprocessable) << broken.error().message;
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
  expect_refused(Tar{}.file("first", "x").file("file/below", "x"), "is there and not a directory");
  expect_refused(Tar{}.file("first", "x").file("folder", "x"), "is there as a directory");
  expect_refused(Tar{}.file("first", "x").file("pipe", "x"), "neither file nor link");
  expect_refused(Tar{}.file("a", "x").file("a/b", "x"), "a file of the archive");
  expect_refused(Tar{}.folder("a").file("a", "x"), "has a directory");
}

}  // namespace
}  // namespace berth::workspaces
