#include "images/archive.hpp"

#include "support/gzip.hpp"
#include "support/tar.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::images {
namespace {

using testing::HasSubstr;
using tests::gzipped;
using tests::Tar;
namespace fs = std::filesystem;

// A folder into which archives are unpacked, next to something that must not be touched.
class Unpacking : public testing::Test {
 protected:
  Unpacking() {
    fs::create_directory(root());
    std::ofstream{folder.file("outside")} << "untouched";
  }

  std::string root() const { return folder.file("root"); }
  std::string at(const std::string& path) const { return root() + "/" + path; }

  Result<Tally> unpack_layers(const std::vector<std::string>& layers, const Limits& limits = {},
                              ArchiveForm form = ArchiveForm::layer) {
    Meter meter;
    TreeWriter into{
        Fd{::open(root().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, {.limits = limits}, meter};
    for (const std::string& bytes : layers) {
      const Fd file{::memfd_create("tar", MFD_CLOEXEC)};
      EXPECT_EQ(::write(file.get(), bytes.data(), bytes.size()),
                static_cast<ssize_t>(bytes.size()));
      ::lseek(file.get(), 0, SEEK_SET);
      Blob blob{file.get(), "the tar", limits.bytes_max};
      BERTH_DO(unpack(blob, form, into, meter));
    }
    BERTH_DO(into.finish());
    return into.tally();
  }
  Result<Tally> unpack_tar(const Tar& tar, const Limits& limits = {}) {
    return unpack_layers({tar.bytes()}, limits, ArchiveForm::plain);
  }

  std::string text_at(const std::string& path) const {
    std::ifstream file{at(path)};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  std::string outside() const {
    std::ifstream file{folder.file("outside")};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  struct stat seen(const std::string& path) const {
    struct stat out{};
    EXPECT_EQ(::lstat(at(path).c_str(), &out), 0) << path;
    return out;
  }

  tests::TemporaryFolder folder;
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

TEST_F(Unpacking, AnEntryThatLeadsOutsideIsRefusedByName) {
  struct Case {
    const char* what;
    Tar tar;
    const char* entry;
    const char* rule;
  };
  const std::string long_name(300, 'n');
  const std::vector<Case> cases{
      {"parent", Tar{}.file("a/../../outside", "x"), "a/../../outside", "'..'"},
      {"only parent", Tar{}.folder(".."), "..", "'..'"},
      {"absolute", Tar{}.file("/etc/passwd", "x"), "/etc/passwd", "absolute"},
      {"link, then a file below it", Tar{}.symbolic_link("d", "..").file("d/outside", "x"), "d",
       "symbolic link"},
      {"link to a folder of the tree",
       Tar{}.folder("real").symbolic_link("d", "real").file("d/f", "x"), "d", "symbolic link"},
      {"absolute link, then a folder below it",
       Tar{}.symbolic_link("d", "/tmp").folder("d/new/deep"), "d", "symbolic link"},
      {"hard link outside", Tar{}.hard_link("h", "../outside"), "h", "outside"},
      {"absolute hard link", Tar{}.hard_link("h", "/etc/passwd"), "h", "outside"},
      {"hard link through a link", Tar{}.symbolic_link("d", "..").hard_link("h", "d/outside"), "h",
       "not in the tree"},
      {"hard link to nothing", Tar{}.hard_link("h", "later").file("later", "x"), "h",
       "not in the tree"},
      {"hard link to a folder", Tar{}.folder("d").hard_link("h", "d"), "h", "not a file"},
      {"hard link to itself", Tar{}.file("h", "x").hard_link("h", "h"), "h", "itself"},
      {"device", Tar{}.add({.path = "null", .type = '3'}), "null", "device"},
      {"block device", Tar{}.add({.path = "etc/sda", .type = '4'}), "etc/sda", "device"},
      {"pipe", Tar{}.add({.path = "p", .type = '6'}), "p", "pipe"},
      {"long name", Tar{}.extended({{"path", long_name}}).file("x", ""), "nnnn", "255"},
      {"root as a file", Tar{}.file("./.", "x"), "./", "root"},
      {"empty link", Tar{}.symbolic_link("l", ""), "l", "says nothing"},
      {"foreign owner", Tar{}.add({.path = "f", .uid = 70000}), "f", "65535"},
      {"owner by his own number", Tar{}.add({.path = "f", .uid = 70000}), "f", "70000:0"},
  };
  for (const Case& each : cases) {
    const auto done = unpack_tar(each.tar);
    ASSERT_FALSE(done) << each.what;
    EXPECT_EQ(done.error().code, Errc::image_invalid) << each.what << done.error().message;
    EXPECT_THAT(done.error().message, HasSubstr(each.entry)) << each.what;
    EXPECT_THAT(done.error().message, HasSubstr(each.rule)) << each.what;
    EXPECT_EQ(outside(), "untouched") << each.what;
  }
}

TEST_F(Unpacking, AFileIsNeverWrittenThroughALinkOfItsOwnName) {
  const auto done = unpack_tar(Tar{}.symbolic_link("f", "../outside").file("f", "inside"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(outside(), "untouched");
  EXPECT_EQ(text_at("f"), "inside");
  EXPECT_TRUE(S_ISREG(seen("f").st_mode));
}

TEST_F(Unpacking, AReplacedFileKeepsItsOtherNames) {
  const auto done = unpack_tar(Tar{}.file("a", "old").hard_link("b", "a").file("a", "new"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("a"), "new");
  EXPECT_EQ(text_at("b"), "old");
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

TEST_F(Unpacking, EachLimitIsKept) {
  struct Case {
    const char* what;
    Tar tar;
    Limits limits;
    const char* says;
  };
  const std::vector<Case> cases{
      {"entries", Tar{}.folder("a").folder("b").folder("c"), {.entries_max = 2}, "2 entries"},
      {"one file", Tar{}.file("a", "12345"), {.file_bytes_max = 4}, "larger than 4"},
      {"all files",
       Tar{}.file("a", "12345").file("b", "12345"),
       {.bytes_max = 9 << 10, .file_bytes_max = 8},
       nullptr},
      {"sum",
       Tar{}.file("a", std::string(6000, 'a')).file("b", std::string(6000, 'b')),
       {.bytes_max = 11'999},
       "larger than 11999"},
      {"depth", Tar{}.file("a/b/c/d", "x"), {.depth_max = 3}, "deeper than 3"},
      {"path", Tar{}.file("abcdef", "x"), {.path_bytes_max = 5}, "path of more than 5"},
      {"link", Tar{}.symbolic_link("l", "123456"), {.target_bytes_max = 5}, "more than 5"},
      {"a header that promises more than any disk has",
       Tar{}.extended({{"size", "9000000000000000000"}}).add({.path = "huge"}),
       {},
       "larger than"},
  };
  for (const Case& each : cases) {
    const auto done = unpack_tar(each.tar, each.limits);
    if (each.says == nullptr) {
      EXPECT_TRUE(done) << each.what << ": " << done.error().message;
      continue;
    }
    ASSERT_FALSE(done) << each.what;
    EXPECT_EQ(done.error().code, Errc::image_invalid) << each.what;
    EXPECT_THAT(done.error().message, HasSubstr(each.says)) << each.what;
  }
}

TEST_F(Unpacking, AHoleStaysAHoleAndCountsAsItsSize) {
  const auto sparse = [](const std::string& size, const std::string& map) {
    return Tar{}
        .extended({{"GNU.sparse.major", "0"},
                   {"GNU.sparse.minor", "1"},
                   {"GNU.sparse.name", "s"},
                   {"GNU.sparse.size", size},
                   {"GNU.sparse.numblocks", "1"},
                   {"GNU.sparse.map", map}})
        .file("s", "end");
  };
  const auto done = unpack_tar(sparse("8388608", "8388605,3"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->bytes, 8388608U);
  EXPECT_EQ(seen("s").st_size, 8388608);
  EXPECT_LT(seen("s").st_blocks, 1024) << "the hole was filled";
  EXPECT_TRUE(text_at("s").ends_with(std::string{"\0end", 4}));

  const auto bomb = unpack_tar(sparse("99999999999999", "99999999999996,3"));
  ASSERT_FALSE(bomb);
  EXPECT_THAT(bomb.error().message, HasSubstr("larger than"));
}

TEST_F(Unpacking, ABombIsStoppedByItsGrowth) {
  // Bytes of one value compress a thousandfold.
  const Tar tar = Tar{}.file("zeros", std::string(8 << 20, '\0'));
  const std::string plain = tar.bytes();
  const std::string packed = gzipped(plain);
  ASSERT_LT(packed.size(), plain.size() / 200);

  const Limits strict{.growth_free_bytes = 1 << 20};
  const auto bomb = unpack_layers({packed}, strict);
  ASSERT_FALSE(bomb);
  EXPECT_EQ(bomb.error().code, Errc::image_invalid);
  EXPECT_THAT(bomb.error().message, HasSubstr("200 times"));
  EXPECT_TRUE(unpack_layers({packed})) << "what is small may grow as it likes";
  EXPECT_TRUE(unpack_layers({plain}, strict)) << "what is not compressed does not grow";
}

TEST_F(Unpacking, WhatIsNoWholeTarIsRefused) {
  const std::string whole = Tar{}.file("a", std::string(5000, 'a')).bytes();
  Tar nested;
  for (int i = 0; i < 100; ++i) nested.add({.path = "global", .type = 'g', .bytes = 0});
  const std::vector<std::pair<const char*, std::string>> cases{
      {"empty", ""},
      {"text", "this is no tar\n"},
      {"cut in a header", whole.substr(0, 300)},
      {"cut in a file", whole.substr(0, 2000)},
      {"gzip of nothing", std::string{"\x1f\x8b\x08\x00\x00\x00\x00\x00", 8}},
      {"headers for headers", nested.bytes()},
      {"a huge header", Tar{}.add({.path = "pax", .type = 'x', .bytes = 1U << 30}).bytes()},
  };
  for (const auto& [what, bytes] : cases) {
    const auto done = unpack_layers({bytes});
    if (std::string_view{what} == "headers for headers" && done) continue;  // surviving is enough
    ASSERT_FALSE(done) << what;
    EXPECT_EQ(done.error().code, Errc::image_invalid) << what << ": " << done.error().message;
  }
}

TEST_F(Unpacking, TakesALayerWithoutTheBlocksThatEndATar) {
  std::string tar = Tar{}.file("a", "1").file("c", "23").bytes();
  tar.resize(tar.find_last_not_of('\0') + 1);  // as umoci 0.4.7 inserts files
  ASSERT_TRUE(tar.ends_with("23"));
  const auto done = unpack_layers({tar, gzipped(tar)});
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("a") + text_at("c"), "123");
  EXPECT_FALSE(unpack_layers({tar}, {}, ArchiveForm::plain)) << "no digest would tell";
  const auto cut = unpack_layers({tar.substr(0, tar.size() - 1)});
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("cut off"));
}

TEST_F(Unpacking, NamesThatAreNoTextInAnyLocaleAreKept) {
  const std::string accents =
      "gr\xc3\xbc\xc3\x9f"
      "e-\xe6\x97\xa5";
  const std::string bytes = "raw-\xff\xfe";
  const auto done = unpack_tar(Tar{}.extended({{"path", accents}}).file("x", "1").file(bytes, "2"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at(accents), "1");
  EXPECT_EQ(text_at(bytes), "2");
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

TEST_F(Unpacking, AWhiteoutCannotLeadOutside) {
  struct Case {
    Tar tar;
    const char* rule;
  };
  for (const Case& each :
       {Case{Tar{}.file(".wh...", ""), "names nothing"},
        Case{Tar{}.file("d/.wh...", ""), "names nothing"},
        Case{Tar{}.file("../.wh.outside", ""), "'..'"},
        Case{Tar{}.file(".wh.", ""), "names nothing"},
        Case{Tar{}.symbolic_link("up", "..").file("up/.wh.outside", ""), "symbolic link"}}) {
    const auto done = unpack_layers({each.tar.bytes()});
    ASSERT_FALSE(done) << each.rule;
    EXPECT_THAT(done.error().message, HasSubstr(each.rule));
    EXPECT_EQ(outside(), "untouched");
  }
  const auto opaque =
      unpack_layers({Tar{}.symbolic_link("way", "..").file("way/.wh..wh..opq", "").bytes()});
  EXPECT_EQ(outside(), "untouched");
  EXPECT_TRUE(fs::exists(root()));
}

TEST_F(Unpacking, WhatLiesBehindALinkIsNamedAndNotTheLink) {
  for (const char* path : {"l/x", "l/a/b"}) {
    for (const Tar& tar : {Tar{}.symbolic_link("l", "/etc").file(path, "1"),
                           Tar{}.symbolic_link("l", "/etc").folder(path),
                           Tar{}.symbolic_link("l", "/etc").symbolic_link(path, "y"),
                           Tar{}.file("f", "1").symbolic_link("l", "/etc").hard_link(path, "f")}) {
      const auto done = unpack_tar(tar);
      ASSERT_FALSE(done) << path;
      EXPECT_THAT(done.error().message, HasSubstr("entry '" + std::string{path} + "'"));
    }
  }
}

TEST_F(Unpacking, ABombBehindTheLastEntryIsStoppedToo) {
  const std::string packed = gzipped(Tar{}.file("a", "1").bytes() + std::string(8 << 20, '\0'));
  const auto bomb = unpack_layers({packed}, {.growth_free_bytes = 1 << 20});
  ASSERT_FALSE(bomb);
  EXPECT_THAT(bomb.error().message, HasSubstr("200 times"));
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
}  // namespace berth::images
