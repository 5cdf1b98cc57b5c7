#include "files/tree_writer.hpp"

#include "files/unpacking_fixture.hpp"
#include "support/gzip.hpp"
#include "support/tar.hpp"

#include <unistd.h>

namespace berth::files {
namespace {

using testing::HasSubstr;
using tests::gzipped;
using tests::Tar;
namespace fs = std::filesystem;

class Unpacking : public UnpackingFixture {
 protected:
  Result<Tally> unpack_layers(const std::vector<std::string>& layers) const {
    return unpack(layers, image_layer_rules);
  }
  Result<Tally> unpack_tar(const Tar& tar, const RuleSet& set = image_rules) const {
    return unpack({tar.bytes()}, set);
  }
};

TEST_F(Unpacking, FilesFoldersAndLinksComeOutAsTheyWentIn) {
  const auto done = unpack_tar(Tar{}
                                   .folder("./", 0755)
                                   .folder("./etc", 0750)
                                   .file("./etc/hostname", "berth\n", 0640)
                                   .symbolic_link("./etc/localtime", "/usr/share/zoneinfo/UTC")
                                   .hard_link("./etc/name", "./etc/hostname")
                                   .file("deep/er/than/its/parents", "x"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("etc/hostname"), "berth\n");
  EXPECT_EQ(seen("etc/hostname").st_mode & 07777, 0640U);
  EXPECT_EQ(seen("etc/hostname").st_mtime, 1'700'000'000);
  EXPECT_EQ(seen("etc").st_mode & 07777, 0750U);
  EXPECT_EQ(seen("etc").st_mtime, 1'700'000'000) << "filling a folder must not leave its traces";
  EXPECT_EQ(seen("deep/er").st_mode & 07777, 0755U);
  EXPECT_EQ(fs::read_symlink(at("etc/localtime")), "/usr/share/zoneinfo/UTC");
  EXPECT_EQ(seen("etc/name").st_ino, seen("etc/hostname").st_ino);
}

TEST_F(Unpacking, TheRootHasSeveralSpellings) {
  for (const char* spelling : {".", "./", "/", "././"}) {
    const auto done = unpack_tar(Tar{}.folder(spelling, 0711));
    ASSERT_TRUE(done) << spelling << done.error().message;
    EXPECT_EQ(seen("").st_mode & 07777, 0711U) << spelling;
  }
}

TEST_F(Unpacking, OwnersAreThoseOfTheArchiveOnlyForRoot) {
  const auto done = unpack_tar(Tar{}.add({.path = "f", .uid = 1000, .gid = 33}));
  ASSERT_TRUE(done) << done.error().message;
  const bool root = ::geteuid() == 0;
  EXPECT_EQ(seen("f").st_uid, root ? 1000U : ::geteuid());
  EXPECT_EQ(seen("f").st_gid, root ? 33U : ::getegid());
}

TEST_F(Unpacking, DevicesBelowDevAreLeftOutAndCounted) {
  const auto done = unpack_tar(Tar{}
                                   .folder("dev")
                                   .add({.path = "dev/null", .type = '3'})
                                   .add({.path = "dev/p", .type = '6'}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->devices_skipped, 2U);
  EXPECT_TRUE(fs::is_empty(at("dev")));
}

TEST_F(Unpacking, SetIdBitsAreTakenFromFilesAndCounted) {
  const auto done = unpack_tar(Tar{}
                                   .file("su", "x", 04755)
                                   .file("wall", "x", 02755)
                                   .folder("mail", 02775)
                                   .folder("tmp", 01777));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(seen("su").st_mode & 07777, 0755U);
  EXPECT_EQ(seen("wall").st_mode & 07777, 0755U);
  EXPECT_EQ(seen("mail").st_mode & 07777, 02775U);
  EXPECT_EQ(seen("tmp").st_mode & 07777, 01777U);
  EXPECT_EQ(done->set_id_bits_removed, 2U);
}

TEST_F(Unpacking, TakesALayerWithoutTheBlocksThatEndATar) {
  std::string tar = Tar{}.file("a", "1").file("c", "23").bytes();
  tar.resize(tar.find_last_not_of('\0') + 1);  // as umoci 0.4.7 inserts files
  ASSERT_TRUE(tar.ends_with("23"));
  const auto done = unpack_layers({tar, gzipped(tar)});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("a") + text_at("c"), "123");
  EXPECT_FALSE(unpack({tar}, image_rules)) << "no digest would show it";
  const auto cut = unpack_layers({tar.substr(0, tar.size() - 1)});
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("cut off"));
}

TEST_F(Unpacking, AWhiteoutHidesWhatIsBelowAndNothingOfItsOwnLayer) {
  const std::string base = Tar{}
                               .file("keep", "1")
                               .file("gone", "1")
                               .file("d/old", "1")
                               .file("d/both", "1")
                               .file("d/sub/old", "1")
                               .file("tree/x/y", "1")
                               .bytes();
  const std::string top = Tar{}
                              .file(".wh.gone", "")
                              .file(".wh.tree", "")
                              .file(".wh.never-there", "")
                              .file("d/new", "2")
                              .file("d/both", "2")
                              .file("d/sub/new", "2")
                              .file("d/.wh..wh..opq", "")
                              .file(".wh..wh.plnk", "")
                              .file("again", "2")
                              .file(".wh.again", "")
                              .bytes();
  const auto done = unpack_layers({base, top});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("keep"), "1");
  for (const char* hidden : {"gone", "tree", "d/old", "d/sub/old", ".wh.gone", ".wh..wh.plnk"}) {
    EXPECT_FALSE(fs::exists(at(hidden))) << hidden;
  }
  for (const char* shown : {"d/new", "d/both", "d/sub/new", "again"}) {
    EXPECT_EQ(text_at(shown), "2") << shown;
  }
}

TEST_F(Unpacking, AnOpaqueMarkBehindALinkHidesNothing) {
  const Tar opaque = Tar{}.symbolic_link("way", "..").file("way/.wh..wh..opq", "");
  EXPECT_TRUE(unpack_layers({opaque.bytes()}));
  EXPECT_TRUE(fs::exists(root()));
}

TEST_F(Unpacking, AnImageMayHaveASecondNameOfALink) {
  const auto done = unpack_tar(Tar{}.symbolic_link("s", "../outside").hard_link("l", "s"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(seen("l").st_ino, seen("s").st_ino);
  EXPECT_EQ(fs::read_symlink(at("l")), "../outside");
}

TEST_F(Unpacking, AnUpperLayerLeavesOutPipes) {
  const auto done = unpack_tar(Tar{}.add({.path = "p", .type = '6'}), upper_layer_rules);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(fs::is_empty(root()));
}

TEST_F(Unpacking, AWorkspaceHasNoSpecialBitsAndIgnoresOwners) {
  const Tar tar =
      Tar{}.file("tool", "x", 06755).folder("d", 01777).add({.path = "f", .uid = 70000});
  const auto done = unpack_tar(tar, workspace_rules);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->set_id_bits_removed, 2U);
  EXPECT_EQ(seen("tool").st_mode & 07777, 0755U);
  EXPECT_EQ(seen("d").st_mode & 07777, 0777U);
  EXPECT_EQ(seen("f").st_uid, ::geteuid());
}

TEST_F(Unpacking, AFolderGivesWayToAFileAndAFileToAFolder) {
  const auto done = unpack_layers({Tar{}.file("a/b/c", "1").file("f", "1").bytes(),
                                   Tar{}.file("a", "2").folder("f").file("f/g", "2").bytes()});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("a"), "2");
  EXPECT_EQ(text_at("f/g"), "2");
}

TEST_F(Unpacking, InAPlainTarAWhiteoutIsAFile) {
  const auto done = unpack_tar(Tar{}.file(".wh.x", "1").file("x", "2"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at(".wh.x"), "1");
  EXPECT_EQ(text_at("x"), "2");
}

}  // namespace
}  // namespace berth::files
