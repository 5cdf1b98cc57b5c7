#include "images/image_store.hpp"

#include "base/digest.hpp"
#include "base/files.hpp"
#include "support/full_disk.hpp"
#include "support/gzip.hpp"
#include "support/tar.hpp"
#include "support/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

namespace berth::images {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tests::gzipped;
using tests::Tar;
namespace fs = std::filesystem;

class Images : public testing::Test {
 protected:
  Images() : store(ImageStore::open(folder.file("images")).value()) {}

  std::string write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path{folder.file(name)}.parent_path());
    std::ofstream{folder.file(name), std::ios::binary} << bytes;
    return folder.file(name);
  }
  std::string write_tar(const std::string& content) const {
    return write("tree.tar", Tar{}.file("etc/motd", content).folder("empty").bytes());
  }
  Image imported(const std::string& source, const std::string& name = "a") const {
    const auto image = store.import(source, name);
    EXPECT_TRUE(image) << image.error().message;
    return image.value_or(host_image());
  }
  std::string text_in(const Image& image, const std::string& path) const {
    return read_file(store.root_of(image) + "/" + path, 1 << 20).value_or("(none)");
  }
  // Everything that a failed import might leave.
  std::vector<std::string> left() const {
    std::vector<std::string> paths;
    for (const char* part : {"by-digest", "names", "drafts"}) {
      for (const auto& each : fs::directory_iterator{folder.file("images/") + part}) {
        paths.push_back(each.path());
      }
    }
    return paths;
  }

  // An OCI layout with these layers, as tools write it.
  struct Layout {
    std::string folder;
    std::string manifest_digest;
    std::vector<std::string> blobs;  // paths of the layers
  };
  std::string put_blob(const std::string& layout, const std::string& bytes) const {
    const std::string hex = sha256_hex(bytes);
    write(layout + "/blobs/sha256/" + hex, bytes);
    return "sha256:" + hex;
  }
  // The layers as stored, and their decompressed content.
  Layout make_layout(const std::vector<std::string>& layers, const std::string& name = "oci",
                     const std::vector<std::string>& contents = {}) const {
    Layout out{.folder = folder.file(name), .manifest_digest = {}, .blobs = {}};
    bj::array listed;
    bj::array diff_ids;
    for (const std::string& layer : layers) {
      const std::string digest = put_blob(name, layer);
      listed.push_back(bj::object{{"mediaType", "application/vnd.oci.image.layer.v1.tar"},
                                  {"digest", digest},
                                  {"size", layer.size() + bytes_promised_too_many}});
      const std::size_t i = out.blobs.size();
      diff_ids.push_back(
          bj::value("sha256:" + sha256_hex(contents.empty() ? layer : contents.at(i))));
      out.blobs.push_back(out.folder + "/blobs/sha256/" + digest.substr(7));
    }
    const std::string config =
        encode_text(bj::object{{"os", "linux"},
                               {"architecture", machine_architecture()},
                               {"config", {{"Env", bj::array{"A=b"}}, {"User", "1000"}}},
                               {"rootfs", {{"diff_ids", diff_ids}}}});
    const bj::object described{{"digest", put_blob(name, config)}, {"size", config.size()}};
    const std::string manifest =
        encode_text(bj::object{{"schemaVersion", 2}, {"config", described}, {"layers", listed}});
    out.manifest_digest = put_blob(name, manifest);
    const bj::object chosen{{"digest", out.manifest_digest}, {"size", manifest.size()}};
    write(name + "/index.json", encode_text(bj::object{{"manifests", bj::array{chosen}}}));
    write(name + "/oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    return out;
  }

  // A docker archive whose only layer is stored so, but should have this content.
  std::string docker_archive(const std::string& layer, const std::string& content) const {
    const bj::object rootfs{{"diff_ids", bj::array{"sha256:" + sha256_hex(content)}}};
    const std::string config = encode_text(
        bj::object{{"os", "linux"}, {"architecture", machine_architecture()}, {"rootfs", rootfs}});
    const auto* manifest = R"([{"Config":"c.json","RepoTags":["a:1"],"Layers":["x/layer"]}])";
    const Tar tar = Tar{}.file("c.json", config).file("x/layer", layer);
    return write("docker.tar", Tar{tar}.file("manifest.json", manifest).bytes());
  }

  tests::TemporaryFolder folder;
  ImageStore store;
  std::size_t bytes_promised_too_many = 0;  // for each layer
};

TEST_F(Images, ATarIsFoundByItsNameItsDigestAndTheStartOfIt) {
  const Image image = imported(write_tar("hello"), "tools/a:1");
  EXPECT_EQ(text_in(image, "etc/motd"), "hello");
  EXPECT_EQ(image.kind, ImageKind::tar);
  EXPECT_EQ(image.source_digest,
            "sha256:" + sha256_hex(read_file(folder.file("tree.tar"), 1 << 20).value()));
  for (const std::string& named :
       {std::string{"tools/a:1"}, image.digest, image.digest.substr(0, 19),
        image.digest.substr(7, 12), image.source_digest.value_or("")}) {
    const auto found = store.find(named);
    ASSERT_TRUE(found) << named << ": " << found.error().message;
    EXPECT_EQ(found->digest, image.digest) << named;
    EXPECT_THAT(found->names, ElementsAre("tools/a:1"));
  }
  EXPECT_EQ(store.find("tools/a").error().code, Errc::image_not_found);
}

TEST_F(Images, TheHostIsAlwaysThereAndCannotBeReplaced) {
  EXPECT_EQ(store.find("host")->kind, ImageKind::host);
  EXPECT_EQ(store.root_of(*store.find("host")), "");
  EXPECT_EQ(store.list()->size(), 1U);
  EXPECT_FALSE(store.import(write_tar("x"), "host"));
  EXPECT_FALSE(store.remove("host"));
}

TEST_F(Images, TheSameContentIsStoredOnceWhateverItCameFrom) {
  const Image tar = imported(write_tar("same"), "from-tar");
  const Image directory = imported(store.root_of(tar), "from-directory");
  EXPECT_EQ(directory.digest, tar.digest);
  EXPECT_THAT(directory.names, ElementsAre("from-directory:latest", "from-tar:latest"));
  EXPECT_EQ(store.list()->size(), 2U);
}

TEST_F(Images, ADirectoryIsCopiedWithItsHolesAndLinks) {
  const std::string source = folder.file("source");
  write("source/a", "content");
  fs::create_hard_link(source + "/a", source + "/b");
  fs::create_symlink("/etc/passwd", source + "/link");
  write("source/sparse", "x");
  fs::resize_file(source + "/sparse", 16 << 20);
  const Image image = imported(source);
  const std::string root = store.root_of(image);
  struct stat first{};
  struct stat second{};
  struct stat sparse{};
  ASSERT_EQ(::stat((root + "/a").c_str(), &first), 0);
  ASSERT_EQ(::stat((root + "/b").c_str(), &second), 0);
  ASSERT_EQ(::stat((root + "/sparse").c_str(), &sparse), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(fs::read_symlink(root + "/link"), "/etc/passwd");
  EXPECT_EQ(sparse.st_size, 16 << 20);
  EXPECT_LT(sparse.st_blocks, 1024);
}

TEST_F(Images, ADirectoryWithAPipeIsRefusedWithoutWaitingForIt) {
  write("source/a", "content");
  ASSERT_EQ(::mkfifo(folder.file("source/pipe").c_str(), 0600), 0);
  const auto done = store.import(folder.file("source"), "a");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("'pipe'"));
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(Images, LayersOfALayoutAreLaidOnEachOther) {
  const Layout layout = make_layout({Tar{}.file("a", "1").file("b", "1").bytes(),
                                     Tar{}.file("b", "2").file(".wh.a", "").bytes()});
  const Image image = imported(layout.folder);
  EXPECT_EQ(image.kind, ImageKind::oci);
  EXPECT_EQ(image.source_digest, layout.manifest_digest);
  EXPECT_EQ(image.config.env.at("A"), "b");
  EXPECT_EQ(image.config.user, "1000");
  EXPECT_EQ(text_in(image, "a"), "(none)");
  EXPECT_EQ(text_in(image, "b"), "2");
}

TEST_F(Images, AnArchiveOfALayoutIsTheSameImage) {
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  const Image direct = imported(layout.folder, "direct");
  Tar tar;
  for (const auto& each : fs::recursive_directory_iterator{layout.folder}) {
    const std::string path = fs::relative(each.path(), layout.folder);
    if (each.is_directory()) {
      tar.folder(path);
    } else {
      tar.file(path, read_file(each.path(), 1 << 20).value());
    }
  }
  const Image archived = imported(write("oci.tar", tar.bytes()), "archived");
  EXPECT_EQ(archived.digest, direct.digest);
  EXPECT_EQ(archived.kind, ImageKind::oci);
  EXPECT_TRUE(fs::is_empty(folder.file("images/drafts")));
}

TEST_F(Images, AnArchiveOfDockerIsChecked) {
  const std::string layer = Tar{}.file("a", "1").bytes();
  const std::string other = Tar{}.file("a", "2").bytes();
  for (const bool compressed : {false, true}) {
    const auto stored = [&](const std::string& tar) { return compressed ? gzipped(tar) : tar; };
    const Image image = imported(docker_archive(stored(layer), layer));
    EXPECT_EQ(image.kind, ImageKind::docker);
    EXPECT_EQ(text_in(image, "a"), "1");
    const auto forged = store.import(docker_archive(stored(other), layer), "b");
    ASSERT_FALSE(forged);
    EXPECT_EQ(forged.error().code, Errc::image_digest_mismatch);
  }
}

TEST_F(Images, ALayerOfAnArchiveOfDockerThatWasDamagedIsNamedWithWhatToDo) {
  const std::string layer = Tar{}.file("a", "1").bytes();
  const std::string flipped = "b" + layer.substr(1);  // the header's own checksum no longer matches
  for (const std::string& damaged : {flipped, gzipped(flipped), gzipped(layer).substr(0, 50)}) {
    const auto refused = store.import(docker_archive(damaged, layer), "a");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::image_digest_mismatch) << refused.error().message;
    EXPECT_THAT(refused.error().message, HasSubstr("layer 'x/layer'"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("fetch it again"));
  }
  const auto never = store.import(docker_archive("no tar", "no tar"), "a");
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, Errc::image_invalid);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(Images, ALayerOfALayoutMustHoldWhatTheConfigSays) {
  const std::string layer = Tar{}.file("a", "1").bytes();
  const Layout good = make_layout({gzipped(layer)}, "good", {layer});
  EXPECT_EQ(text_in(imported(good.folder, "good"), "a"), "1");
  for (const auto& [name, stored] :
       {std::pair{"compressed", gzipped(layer)}, std::pair{"plain", layer}}) {
    const Layout wrong = make_layout({stored}, name, {"something else"});
    const auto done = store.import(wrong.folder, name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(done.error().code, Errc::image_digest_mismatch) << name;
    EXPECT_THAT(done.error().message, HasSubstr("sha256:" + sha256_hex(layer))) << name;
  }
}

TEST_F(Images, AChangedLayerIsNoticedAndNothingStays) {
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  const std::string good = read_file(layout.blobs.front(), 1 << 20).value();
  for (const std::size_t place : {512U, 0U}) {  // in a file: still a valid tar; in a header: not
    std::ofstream{layout.blobs.front()} << std::string{good}.replace(place, 1, "2");
    const auto done = store.import(layout.folder, "a");
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Errc::image_digest_mismatch) << done.error().message;
    EXPECT_THAT(left(), IsEmpty());
  }
}

TEST_F(Images, ALayerHasTheSizeThatItsManifestSays) {
  bytes_promised_too_many = 1;
  const auto done = store.import(make_layout({Tar{}.file("a", "1").bytes()}).folder, "a");
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("the document above it says"));
}

TEST_F(Images, WhatFollowsTheEndOfALayerCountsForItsDigest) {
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  std::ofstream{layout.blobs.front(), std::ios::app} << "more";
  const auto done = store.import(layout.folder, "a");
  ASSERT_FALSE(done);
  EXPECT_THAT(left(), IsEmpty());
}

TEST_F(Images, AMissingBlobIsNamed) {
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  fs::remove(layout.blobs.front());
  const auto done = store.import(layout.folder, "a");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::image_invalid);
  EXPECT_THAT(done.error().message, HasSubstr("is missing"));
}

TEST_F(Images, ABlobThatIsALinkIsNotFollowed) {
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  const std::string real = write("elsewhere", read_file(layout.blobs.front(), 1 << 20).value());
  fs::remove(layout.blobs.front());
  fs::create_symlink(real, layout.blobs.front());
  EXPECT_FALSE(store.import(layout.folder, "a"));
}

TEST_F(Images, AnExpectedDigestIsInsistedOn) {
  const std::string tar = write_tar("x");
  const std::string right = "sha256:" + sha256_hex(read_file(tar, 1 << 20).value());
  EXPECT_TRUE(store.import(tar, "a", {.expected_digest = right}));
  const auto wrong = store.import(tar, "b", {.expected_digest = "sha256:" + std::string(64, '0')});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Errc::image_digest_mismatch);
  EXPECT_THAT(wrong.error().message, HasSubstr(right));
  const Layout layout = make_layout({Tar{}.file("a", "1").bytes()});
  EXPECT_TRUE(store.import(layout.folder, "c", {.expected_digest = layout.manifest_digest}));
}

TEST_F(Images, EverySourceOfAnImageIsANameForIt) {
  const std::string tar = Tar{}.file("a", "1").bytes();
  const Image image = imported(write("plain.tar", tar));
  const std::string packed = gzipped(tar);
  const std::string digest = "sha256:" + sha256_hex(packed);
  for (const char* again : {"b", "c"}) {
    const auto done =
        store.import(write("packed.tar.gz", packed), again, {.expected_digest = digest});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->digest, image.digest);
    EXPECT_THAT(done->other_source_digests.value(), ElementsAre(digest));
  }
  EXPECT_EQ(store.find(digest)->digest, image.digest);
  EXPECT_EQ(store.find(image.source_digest.value())->digest, image.digest);
}

TEST_F(Images, AnImportThatIsToldToStopLeavesNothing) {
  std::array<int, 2> silent{};
  std::array<int, 2> stop{};
  ASSERT_EQ(::pipe(silent.data()), 0);
  ASSERT_EQ(::pipe(stop.data()), 0);
  const std::array<Fd, 4> ends{Fd{silent[0]}, Fd{silent[1]}, Fd{stop[0]}, Fd{stop[1]}};
  ASSERT_EQ(::write(stop[1], "x", 1), 1);
  write("source/a", "content");
  for (const std::string& source :
       {"/proc/self/fd/" + std::to_string(silent[0]), write_tar("x"), folder.file("source")}) {
    const auto done = store.import(source, "a", {.stop = stop[0]});
    ASSERT_FALSE(done) << source;
    EXPECT_EQ(done.error().code, Errc::cancelled) << done.error().message;
    EXPECT_THAT(done.error().message, HasSubstr("nothing was left behind"));
    EXPECT_THAT(left(), IsEmpty()) << source;
  }
}

TEST_F(Images, AHostileTarLeavesNothing) {
  const auto done =
      store.import(write("bad.tar", Tar{}.file("good", "1").file("../bad", "2").bytes()), "a");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::image_invalid);
  EXPECT_THAT(done.error().message, HasSubstr("../bad"));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_FALSE(fs::exists(folder.file("images/bad")));
}

TEST_F(Images, AFullDiskLeavesNothing) {
  const std::string tar = write_tar("does not fit");
  Result<Image> done = fail(Errc::bug, "");
  {
    const tests::FullDisk full;
    done = store.import(tar, "a");
  }
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::store_full) << done.error().message;
  EXPECT_THAT(done.error().message, HasSubstr("nothing was left behind"));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_TRUE(store.import(tar, "a")) << "with room again it works";
}

TEST_F(Images, ANameMovesToTheNewImageAndGcTakesTheOld) {
  const Image old = imported(write_tar("old"));
  const Image fresh = imported(write_tar("new"));
  EXPECT_EQ(store.find("a")->digest, fresh.digest);
  EXPECT_THAT(store.find(old.digest)->names, IsEmpty());
  const auto removed = store.gc();
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(removed->digests, ElementsAre(old.digest));
  EXPECT_FALSE(store.find(old.digest));
  EXPECT_EQ(text_in(fresh, "etc/motd"), "new");
}

TEST_F(Images, TheImageGoesWithItsLastName) {
  const std::string tar = write_tar("x");
  const Image image = imported(tar, "one");
  imported(tar, "two");
  const auto first = store.remove("one");
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_THAT(first->digests, IsEmpty());
  EXPECT_TRUE(store.find("two"));
  const auto second = store.remove("two");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_THAT(second->digests, ElementsAre(image.digest));
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_EQ(store.remove("two").error().code, Errc::image_not_found);
}

TEST_F(Images, AHeldImageIsNeitherRemovedNorCollected) {
  const Image image = imported(write_tar("x"));
  ASSERT_TRUE(store.hold(image.digest, "lease-1"));
  ASSERT_TRUE(store.hold(image.digest, "lease-2"));
  const auto refused = store.remove("a");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::image_in_use);
  EXPECT_THAT(refused.error().facts.at("holders"), ElementsAre("lease-1", "lease-2"));
  EXPECT_THAT(refused.error().message, HasSubstr("sandbox lease-1 and 1 more"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("berth sandbox ls"));
  imported(write_tar("other"));  // takes over the name
  EXPECT_THAT(store.gc()->digests, IsEmpty());

  // Another process, or this one after a restart, releases what it finds.
  const ImageStore again = ImageStore::open(folder.file("images")).value();
  EXPECT_THAT(again.find(image.digest)->holders, ElementsAre("lease-1", "lease-2"));
  ASSERT_TRUE(again.release(image.digest, "lease-1"));
  ASSERT_TRUE(again.release(image.digest, "lease-2"));
  ASSERT_TRUE(again.release(image.digest, "lease-2")) << "releasing twice is fine";
  EXPECT_THAT(store.gc()->digests, ElementsAre(image.digest));
  EXPECT_EQ(store.hold(image.digest, "lease-3").error().code, Errc::image_not_found);
}

TEST_F(Images, GcSparesWhatEnvironmentsNameAndWhatIsYoung) {
  const Image known = imported(write_tar("one"));
  const Image unknown = imported(write_tar("two"));
  imported(write_tar("three"));  // takes over the name
  EXPECT_THAT(store.gc({.made_after = Time{0}})->digests, IsEmpty()) << "all are younger";
  const Time later{known.created_at->ms + 3'600'000};
  ASSERT_TRUE(store.note_environments({{.id = "1", .name = "pinned", .image = known.digest},
                                       {.id = "2", .name = "lost", .image = "no-such-image"}}));
  const auto removed = store.gc({.made_after = later});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_THAT(removed->digests, ElementsAre(unknown.digest));
  EXPECT_TRUE(store.find(known.digest));
}

TEST_F(Images, WhatAnEnvironmentNamesIsRemovedOnlyByForce) {
  const std::string tar = write_tar("x");
  const Image image = imported(tar, "one");
  imported(tar, "two");
  ASSERT_TRUE(store.note_environments({{.id = "1", .name = "named", .image = "one"},
                                       {.id = "2", .name = "pinned", .image = image.digest}}));
  const auto named = store.remove("one");
  ASSERT_FALSE(named) << "its name went";
  EXPECT_EQ(named.error().code, Errc::image_in_use);
  EXPECT_THAT(named.error().facts.at("environments"), ElementsAre("named (1)"));
  EXPECT_TRUE(store.remove("two")) << "nobody names it by that";
  const auto whole = store.remove(image.digest.substr(0, 19));
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().facts.at("environments"), ElementsAre("named (1)", "pinned (2)"));

  // Another process respects it too, until the environments are removed.
  const ImageStore again = ImageStore::open(folder.file("images")).value();
  EXPECT_FALSE(again.remove("one"));
  EXPECT_TRUE(again.remove("one", IfNamed::remove));
  imported(tar, "one");
  ASSERT_TRUE(store.note_environments({}));
  EXPECT_TRUE(again.remove("one"));
}

TEST_F(Images, AHolderCannotBeAPath) {
  const Image image = imported(write_tar("x"));
  for (const char* holder : {"", "..", ".x", "a/b", "a b"}) {
    EXPECT_FALSE(store.hold(image.digest, holder)) << holder;
    EXPECT_FALSE(store.release(image.digest, holder)) << holder;
  }
}

TEST_F(Images, APinnedImageStaysUntilItsDescriptorIsClosed) {
  const Image image = imported(write_tar("x"));
  {
    const auto one = store.pin(image.digest);
    const auto two = store.pin(image.digest);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(store.remove("a").error().code, Errc::image_in_use);
    EXPECT_TRUE(store.find("a")) << "the name went although the image stayed";
  }
  EXPECT_TRUE(store.remove("a"));
}

TEST_F(Images, OnlyDraftsOfTheDeadAreSwept) {
  const StoreFolder things = StoreFolder::open(folder.file("images"), "by-digest").value();
  const auto alive = things.make_draft();
  ASSERT_TRUE(alive);
  write("images/drafts/draft-of-the-dead/root/file", "x");
  const auto removed = store.gc();
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(removed->drafts, 1U);
  EXPECT_TRUE(fs::exists(alive->path.get()));
  EXPECT_FALSE(fs::exists(folder.file("images/drafts/draft-of-the-dead")));
}

TEST_F(Images, ADamagedImageHidesNoOtherAndGcTakesIt) {
  const Image good = imported(write_tar("good"), "good");
  const Image damaged = imported(write_tar("damaged"), "damaged");
  std::ofstream{fs::path{store.root_of(damaged)}.parent_path() / "image.json"} << "{";
  EXPECT_EQ(store.find("damaged").error().code, Errc::image_invalid);
  EXPECT_EQ(store.list()->size(), 2U);
  EXPECT_EQ(store.find("good")->digest, good.digest);
  EXPECT_THAT(store.gc()->digests, ElementsAre(damaged.digest));
  EXPECT_EQ(store.find("damaged").error().code, Errc::image_not_found);
  EXPECT_EQ(left().size(), 2U) << "one image and its name";
  imported(folder.file("tree.tar"), "damaged");
}

TEST_F(Images, ImportingADamagedImageAgainMendsIt) {
  const std::string tar = write_tar("x");
  const Image image = imported(tar);
  const std::string file = store.root_of(image) + "/etc/motd";
  std::ofstream{file} << "damaged";
  {
    const auto pin = store.pin(image.digest);
    EXPECT_EQ(store.import(tar, "a").error().code, Errc::image_in_use);
  }
  ASSERT_TRUE(store.hold(image.digest, "sandbox-1"));
  const auto refused = store.import(tar, "b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::image_in_use);
  EXPECT_THAT(refused.error().message, HasSubstr("sandbox-1"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("import it again"));
  ASSERT_TRUE(store.release(image.digest, "sandbox-1"));

  EXPECT_THAT(imported(tar, "b").names, ElementsAre("a:latest", "b:latest"));
  EXPECT_TRUE(store.verify(image));
  EXPECT_EQ(text_in(image, "etc/motd"), "x");
  std::ofstream{fs::path{store.root_of(image)}.parent_path() / "image.json"} << "{";
  EXPECT_EQ(imported(tar, "b").digest, image.digest);
  EXPECT_TRUE(fs::is_empty(folder.file("images/drafts")));
}

TEST_F(Images, AHalfWrittenNameIsNoName) {
  const Image image = imported(write_tar("x"));
  write("images/names/b:latest.new.abc", image.digest + "\n");
  EXPECT_THAT(store.find("a")->names, ElementsAre("a:latest"));
  ASSERT_TRUE(store.gc());
  EXPECT_EQ(left().size(), 2U);
}

TEST_F(Images, EveryChangeOfATreeIsFound) {
  const auto fresh = [&] {
    if (store.find("a")) EXPECT_TRUE(store.remove("a"));
    return imported(write_tar("x"));
  };
  const std::vector<std::pair<const char*, void (*)(const std::string&)>> changes{
      {"content", [](const std::string& root) { std::ofstream{root + "/etc/motd"} << "y"; }},
      {"mode", [](const std::string& root) { ::chmod((root + "/etc/motd").c_str(), 0600); }},
      {"mode of a folder",
       [](const std::string& root) { ::chmod((root + "/empty").c_str(), 0700); }},
      {"a new file", [](const std::string& root) { std::ofstream{root + "/empty/f"} << ""; }},
      {"a file less", [](const std::string& root) { fs::remove(root + "/etc/motd"); }},
      {"another name",
       [](const std::string& root) { fs::rename(root + "/etc/motd", root + "/etc/mote"); }},
      {"a link instead",
       [](const std::string& root) {
         fs::remove(root + "/etc/motd");
         fs::create_symlink("x", root + "/etc/motd");
       }},
  };
  EXPECT_TRUE(store.verify(fresh()));
  for (const auto& [what, change] : changes) {
    const Image image = fresh();
    change(store.root_of(image));
    const auto verified = store.verify(image);
    ASSERT_FALSE(verified) << what;
    EXPECT_EQ(verified.error().code, Errc::image_digest_mismatch) << what;
  }
}

TEST_F(Images, AnotherConfigIsAnotherImage) {
  Image image = imported(write_tar("x"));
  image.config.user = "root";
  EXPECT_EQ(store.verify(image).error().code, Errc::image_digest_mismatch);
}

TEST_F(Images, ImportsSideBySideDoNotDisturbEachOther) {
  constexpr int importers = 4;
  const std::array tars{write("side0.tar", Tar{}.file("f", "side0").bytes()),
                        write("side1.tar", Tar{}.file("f", "side1").bytes())};
  std::vector<std::jthread> threads;
  threads.reserve(importers);
  std::vector<Result<Image>> done(importers, fail(Errc::bug, ""));
  for (int i = 0; i < importers; ++i) {
    threads.emplace_back([&, i] { done[i] = store.import(tars[i % 2], "n" + std::to_string(i)); });
  }
  threads.clear();
  for (const auto& each : done) EXPECT_TRUE(each) << each.error().message;
  EXPECT_EQ(store.list()->size(), 3U);
  EXPECT_TRUE(fs::is_empty(folder.file("images/drafts")));
}

TEST_F(Images, ProgressNamesEachPhase) {
  std::vector<Phase> phases;
  const auto sink = [&phases](const Progress& progress) {
    if (phases.empty() || phases.back() != progress.phase) phases.push_back(progress.phase);
  };
  ASSERT_TRUE(store.import(write_tar("x"), "a", {}, sink));
  EXPECT_THAT(phases, ElementsAre(Phase::unpacking, Phase::hashing, Phase::saving));
}

TEST_F(Images, WhatIsNotThereIsAFileThatIsNotThere) {
  EXPECT_EQ(store.import(folder.file("nothing"), "a").error().code, Errc::file_not_found);
}

}  // namespace
}  // namespace berth::images
