#include "files/unpacking_fixture.hpp"
#include "support/tar.hpp"

#include <archive.h>
#include <archive_entry.h>

namespace berth::files {
namespace {

using testing::HasSubstr;
using tests::Tar;
namespace fs = std::filesystem;

// Every case runs under every set of rules to which it applies: a fix for one is a fix for all.
class HostileArchive : public UnpackingFixture, public testing::WithParamInterface<RuleSet> {
 protected:
  const RuleSet& set() const { return GetParam(); }
  Errc refusal() const { return refusal_of(set().rules); }
  Errc no_tar() const { return set().is_workspace() ? Errc::unprocessable : Errc::image_invalid; }

  Result<Tally> unpack_bytes(const std::string& bytes, const Limits& limits = {}) const {
    empty_root();
    return unpack({bytes}, set(), limits);
  }
  Result<Tally> unpack_tar(const Tar& tar, const Limits& limits = {}) const {
    return unpack_bytes(tar.bytes(), limits);
  }
  void expect_refused(const std::string& what, const Tar& tar, const std::string& entry,
                      const std::string& rule, const Limits& limits = {}) const {
    const auto done = unpack_tar(tar, limits);
    ASSERT_FALSE(done) << what;
    EXPECT_EQ(done.error().code, refusal()) << what << ": " << done.error().message;
    EXPECT_THAT(done.error().message, HasSubstr(entry)) << what;
    EXPECT_THAT(done.error().message, HasSubstr(rule)) << what;
  }

  static std::string compressed(const std::string& bytes, int (*add_filter)(::archive*)) {
    std::string out(bytes.size() + 65536, '\0');
    std::size_t used = 0;
    ::archive* writer = ::archive_write_new();
    add_filter(writer);
    ::archive_write_set_format_raw(writer);
    ::archive_write_set_bytes_in_last_block(writer, 1);
    ::archive_write_open_memory(writer, out.data(), out.size(), &used);
    ::archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_write_header(writer, entry);
    ::archive_write_data(writer, bytes.data(), bytes.size());
    ::archive_entry_free(entry);
    ::archive_write_free(writer);
    out.resize(used);
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(AllRules, HostileArchive,
                         testing::Values(image_rules, image_layer_rules, upper_layer_rules,
                                         workspace_rules, any_links_rules),
                         [](const auto& each) { return each.param.name; });

enum class For { all, images, image_layers, upper_and_workspaces, not_upper, workspaces };

bool applies(For which, const RuleSet& set) {
  switch (which) {
    case For::all: return true;
    case For::images: return !set.is_workspace();
    case For::image_layers: return set.form == ArchiveForm::layer;
    case For::upper_and_workspaces: return set.rules != Rules::image;
    case For::not_upper: return set.rules != Rules::layer;
    case For::workspaces: return set.is_workspace();
  }
  return false;
}

struct HostileCase {
  const char* what;
  Tar tar;
  const char* entry;  // that the error names
  const char* rule;
  For which = For::all;
};

std::vector<HostileCase> paths_that_lead_outside() {
  const auto named = [](const std::string& path) {
    return Tar{}.extended({{"path", path}}).file("x", "");
  };
  return {
      {"parent", Tar{}.file("a/../../outside", "x"), "a/../../outside", "'..'"},
      {"parent after a good one", Tar{}.file("good", "x").file("../evil", "x"), "../evil", "'..'"},
      {"only parent", Tar{}.folder(".."), "..", "'..'"},
      {"folder of the parent", Tar{}.folder("../evil"), "../evil", "'..'"},
      {"parent in an extended header", named("a/../../evil"), "a/../../evil", "'..'"},
      {"absolute", Tar{}.file("/etc/passwd", "x"), "/etc/passwd", "absolute"},
      {"absolute folder", Tar{}.folder("/evil"), "/evil", "absolute"},
      {"long name", named(std::string(300, 'n')), "nnnn", "255"},
      {"long path", named(std::string(5000, 'n')), "nnnn", "4095"},
      {"root as a file", Tar{}.file("./.", "x"), "./", "root"},
      {"root as a link", Tar{}.symbolic_link("./.", "x"), "./", "root"},
      {"slash alone", Tar{}.folder("/"), "/", "absolute", For::workspaces},
      {"whiteout of the parent", Tar{}.file(".wh...", ""), ".wh...", "names nothing",
       For::image_layers},
      {"whiteout of a folder's parent", Tar{}.file("d/.wh...", ""), "d/.wh...", "names nothing",
       For::image_layers},
      {"whiteout outside", Tar{}.file("../.wh.outside", ""), "../outside", "'..'",
       For::image_layers},
      {"whiteout of nothing", Tar{}.file(".wh.", ""), ".wh.", "names nothing", For::image_layers},
      {"whiteout through a link", Tar{}.symbolic_link("up", "..").file("up/.wh.outside", ""),
       "up/outside", "symbolic link", For::image_layers},
  };
}

std::vector<HostileCase> links_that_lead_outside() {
  return {
      {"link, then a file below it", Tar{}.symbolic_link("d", "..").file("d/outside", "x"), "d",
       "link"},
      {"link to a folder of the tree",
       Tar{}.folder("real").symbolic_link("d", "real").file("d/f", "x"), "d/f", "symbolic link"},
      {"link to its own folder, then a file", Tar{}.symbolic_link("way", ".").file("way/evil", "x"),
       "way/evil", "symbolic link"},
      {"link to its own folder, then a folder", Tar{}.symbolic_link("way", ".").folder("way/evil"),
       "way/evil", "symbolic link"},
      {"link, then a link below it", Tar{}.symbolic_link("l", ".").symbolic_link("l/a/b", "y"),
       "l/a/b", "symbolic link"},
      {"link, then a hard link below it",
       Tar{}.file("f", "1").symbolic_link("l", ".").hard_link("l/x", "f"), "l/x", "symbolic link"},
      {"absolute link, then a folder below it",
       Tar{}.symbolic_link("d", "/tmp").folder("d/new/deep"), "d", "link"},
      {"file, then a file below it", Tar{}.file("a", "x").file("a/b", "x"), "a/b",
       "a file of the archive"},
      {"hard link outside", Tar{}.hard_link("h", "../outside"), "h", "outside"},
      {"absolute hard link", Tar{}.hard_link("h", "/etc/passwd"), "h", "outside"},
      {"hard link through a link", Tar{}.symbolic_link("d", "..").hard_link("h", "d/outside"), "",
       "link"},
      {"hard link through a link of the tree",
       Tar{}.file("r/f", "x").symbolic_link("d", "r").hard_link("h", "d/f"), "h",
       "not in the tree"},
      {"hard link to nothing", Tar{}.hard_link("h", "later").file("later", "x"), "h",
       "not in the tree"},
      {"hard link to a folder", Tar{}.folder("d").hard_link("h", "d"), "h", "not a regular file"},
      {"hard link to the root", Tar{}.hard_link("h", "."), "h", "not a regular file"},
      {"hard link to itself", Tar{}.file("h", "x").hard_link("h", "h"), "h", "itself"},
      {"hard link to a link, then a file through it",
       Tar{}.symbolic_link("s", "x").hard_link("l", "s").file("l", "evil"), "l",
       "not a regular file", For::workspaces},
      {"empty link", Tar{}.symbolic_link("l", ""), "l", "nothing that can be named"},
  };
}

std::vector<HostileCase> entries_of_a_wrong_kind() {
  return {
      {"device", Tar{}.add({.path = "null", .type = '3'}), "null", "device"},
      {"block device", Tar{}.add({.path = "etc/sda", .type = '4'}), "etc/sda", "device"},
      {"pipe", Tar{}.add({.path = "p", .type = '6'}), "p", "pipe", For::not_upper},
      {"device below dev", Tar{}.add({.path = "dev/null", .type = '3'}), "dev/null", "device",
       For::upper_and_workspaces},
      {"foreign owner", Tar{}.add({.path = "f", .uid = 70000}), "f", "65535", For::images},
      {"foreign group", Tar{}.add({.path = "f", .gid = 70000}), "f", "0:70000", For::images},
      {"owner by his own number", Tar{}.add({.path = "f", .uid = 70000}), "f", "70000:0",
       For::images},
      {"file in place of a folder", Tar{}.folder("a").file("a", "x"), "a", "has a directory",
       For::workspaces},
      {"link in place of a folder", Tar{}.folder("a").symbolic_link("a", "x"), "a",
       "has a directory", For::workspaces},
      {"folder in place of a file", Tar{}.file("a", "x").folder("a"), "a", "a file of the archive",
       For::workspaces},
  };
}

TEST_P(HostileArchive, AnEntryThatLeadsOutsideIsRefusedByName) {
  for (const auto& cases :
       {paths_that_lead_outside(), links_that_lead_outside(), entries_of_a_wrong_kind()}) {
    for (const HostileCase& each : cases) {
      if (applies(each.which, set())) expect_refused(each.what, each.tar, each.entry, each.rule);
    }
  }
}

TEST_P(HostileArchive, AnEntryBehindALinkIsNamedAndNotTheLink) {
  for (const char* path : {"l/x", "l/a/b"}) {
    for (const Tar& tar : {Tar{}.symbolic_link("l", "etc").file(path, "1"),
                           Tar{}.symbolic_link("l", "etc").folder(path),
                           Tar{}.symbolic_link("l", "etc").symbolic_link(path, "y"),
                           Tar{}.file("f", "1").symbolic_link("l", "etc").hard_link(path, "f")}) {
      expect_refused(path, tar, "'" + std::string{path} + "'", "symbolic link");
    }
  }
}

TEST_P(HostileArchive, OnlyLinksThatRemainInsideAreMadeUnderThatRule) {
  RuleSet inside = set();
  inside.links = LinkRule::inside;
  const std::vector<std::pair<Tar, std::string>> cases{
      {Tar{}.symbolic_link("l", "/etc/passwd"), "absolute path"},
      {Tar{}.symbolic_link("l", "../outside"), "leads out of the root"},
      {Tar{}.symbolic_link("a/b/l", "../../../outside"), "leads out of the root"},
      // By its text the second link remains inside; followed through the first it does not.
      {Tar{}.symbolic_link("a/b/up", "../..").symbolic_link("l", "a/b/up/.."), "behind a name"}};
  for (const auto& [tar, rule] : cases) {
    const auto done = unpack({tar.bytes()}, inside);
    ASSERT_FALSE(done) << rule;
    EXPECT_EQ(done.error().code, refusal());
    EXPECT_THAT(done.error().message, HasSubstr(rule));
    empty_root();
  }
  ASSERT_TRUE(unpack({Tar{}.symbolic_link("a/b/l", "../../x/./y").bytes()}, inside));
  EXPECT_EQ(fs::read_symlink(at("a/b/l")), "../../x/./y");
  RuleSet none = set();
  none.links = LinkRule::refused;
  const auto refused = unpack({Tar{}.symbolic_link("l", "file").bytes()}, none);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("is a symbolic link"));
}

TEST_P(HostileArchive, AFileIsNeverWrittenThroughALinkOfItsOwnName) {
  RuleSet any = set();
  any.links = LinkRule::any;
  const Tar tar = Tar{}.symbolic_link("f", "../outside").file("f", "inside");
  const auto done = unpack({tar.bytes()}, any);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("f"), "inside");
  EXPECT_TRUE(S_ISREG(seen("f").st_mode));
}

TEST_P(HostileArchive, AReplacedFileKeepsItsOtherNames) {
  const auto done = unpack_tar(Tar{}.file("a", "old").hard_link("b", "a").file("a", "new"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at("a"), "new");
  EXPECT_EQ(text_at("b"), "old");
}

TEST_P(HostileArchive, EachLimitIsKept) {
  const Tar three = Tar{}.file("a", "1234").file("b", "1234").file("c/d", "1234");
  struct Case {
    const char* what;
    Tar tar;
    Limits limits;
    const char* says;
  };
  const std::vector<Case> cases{
      {"entries", Tar{}.folder("a").folder("b").folder("c"), {.entries_max = 2}, "2 entries"},
      {"files", three, {.entries_max = 2}, "2 entries"},
      {"one file", Tar{}.file("a", "12345"), {.file_bytes_max = 4}, "more than 4 bytes"},
      {"all files", three, {.bytes_max = 10}, "larger than 10 bytes"},
      {"large files",
       Tar{}.file("a", std::string(6000, 'a')).file("b", std::string(6000, 'b')),
       {.bytes_max = 11'999},
       "larger than 11999"},
      {"depth", Tar{}.file("a/b/c/d", "x"), {.depth_max = 3}, "deeper than 3"},
      {"path", Tar{}.file("abcdef", "x"), {.path_bytes_max = 5}, "longer than 5"},
      {"link", Tar{}.symbolic_link("l", "123456"), {.target_bytes_max = 5}, "more than 5"},
      {"folders", Tar{}.folder("a").folder("b"), {.folder_names_bytes_max = 200}, "too many"},
      {"folders that only paths name",
       Tar{}.file("a/f", "").file("b/f", ""),
       {.folder_names_bytes_max = 200},
       "too many"},
      {"a header that promises more than any disk has",
       Tar{}.extended({{"size", "9000000000000000000"}}).add({.path = "huge"}),
       {},
       "more than"},
  };
  for (const Case& each : cases) expect_refused(each.what, each.tar, "", each.says, each.limits);
  EXPECT_TRUE(unpack_tar(three, {.entries_max = 3, .bytes_max = 12}));
  EXPECT_TRUE(unpack_tar(Tar{}.file("a", "12345").file("b", "12345"),
                         {.bytes_max = 9 << 10, .file_bytes_max = 8}));
}

TEST_P(HostileArchive, AHoleStaysAHoleAndCountsAsItsSize) {
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
  expect_refused("bomb", sparse("99999999999999", "99999999999996,3"), "s", "has more than");
  const Tar newer = Tar{}
                        .extended({{"GNU.sparse.major", "1"},
                                   {"GNU.sparse.minor", "0"},
                                   {"GNU.sparse.name", "huge"},
                                   {"GNU.sparse.realsize", "1099511627776"}})
                        .file("huge", "0\n" + std::string(510, '\0'));
  expect_refused("bomb of the newer form", newer, "huge", "has more than");
}

TEST_P(HostileArchive, ABombIsStoppedByItsGrowth) {
  // Bytes of one value compress a thousandfold.
  const std::string plain = Tar{}.file("zeros", std::string(8 << 20, '\0')).bytes();
  const std::string packed = compressed(plain, ::archive_write_add_filter_gzip);
  ASSERT_LT(packed.size(), plain.size() / 200);
  const std::string behind = compressed(Tar{}.file("a", "1").bytes() + std::string(8 << 20, '\0'),
                                        ::archive_write_add_filter_gzip);
  const Limits strict{.growth_free_bytes = 1 << 20};
  for (const std::string& bomb : {packed, behind}) {
    const auto done = unpack_bytes(bomb, strict);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, refusal());
    EXPECT_THAT(done.error().message, HasSubstr("200 times its size"));
  }
  EXPECT_TRUE(unpack_bytes(packed)) << "what is small may grow as it likes";
  EXPECT_TRUE(unpack_bytes(plain, strict)) << "what is not compressed does not grow";
}

TEST_P(HostileArchive, AnIncompleteTarIsRefused) {
  const std::string whole = Tar{}.file("a", "x").file("b", std::string(5000, 'a')).bytes();
  const std::string zipped = compressed(whole, ::archive_write_add_filter_gzip);
  Tar nested;
  for (int i = 0; i < 100; ++i) nested.add({.path = "global", .type = 'g', .bytes = 0});
  Tar endless;
  endless.add({.path = "pax", .type = 'x', .bytes = 1ULL << 32});
  endless.body(std::string(2 << 20, 'h'));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"empty", ""},
      {"text", "this is not a tar\n"},
      {"cut in a header", whole.substr(0, 300)},
      {"cut in a file", whole.substr(0, 3000)},
      {"gzip of nothing", std::string{"\x1f\x8b\x08\x00\x00\x00\x00\x00", 8}},
      {"gzip cut off", zipped.substr(0, zipped.size() / 2)},
      {"headers for headers", nested.bytes()},
      {"a huge header", Tar{}.add({.path = "pax", .type = 'x', .bytes = 1U << 30}).bytes()},
      {"a header that never ends", endless.bytes()},
  };
  for (const auto& [what, bytes] : cases) {
    const auto done = unpack_bytes(bytes);
    // It may be taken for an empty archive, or for an entry without a name.
    if (what == "headers for headers" && (done || done.error().code == refusal())) continue;
    ASSERT_FALSE(done) << what;
    EXPECT_EQ(done.error().code, no_tar()) << what << ": " << done.error().message;
  }
}

TEST_P(HostileArchive, CommonCompressionsAreUnpackedAndAWorkspaceTakesTwo) {
  const std::string tar = Tar{}.file("a/file", "text").bytes();
  for (auto* const filter : {::archive_write_add_filter_gzip, ::archive_write_add_filter_zstd}) {
    const auto done = unpack_bytes(compressed(tar, filter));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(text_at("a/file"), "text");
  }
  for (auto* const filter : {::archive_write_add_filter_bzip2, ::archive_write_add_filter_xz,
                             ::archive_write_add_filter_lz4}) {
    const auto done = unpack_bytes(compressed(tar, filter));
    EXPECT_EQ(done.has_value(), !set().is_workspace());
    if (!done) EXPECT_EQ(done.error().code, no_tar());
  }
}

TEST_P(HostileArchive, NamesThatAreNotTextInAnyLocaleAreKept) {
  const std::string accents =
      "gr\xc3\xbc\xc3\x9f"
      "e-\xe6\x97\xa5";
  const std::string bytes = "raw-\xff\xfe";
  const auto done = unpack_tar(Tar{}.extended({{"path", accents}}).file("x", "1").file(bytes, "2"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(text_at(accents), "1");
  EXPECT_EQ(text_at(bytes), "2");
}

}  // namespace
}  // namespace berth::files
