#include "images/source.hpp"

#include "base/digest.hpp"
#include "base/text.hpp"
#include "files/beneath.hpp"
#include "files/tree_copy.hpp"
#include "images/blob.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace berth::images {
namespace {

constexpr std::uint64_t document_bytes_max = 4 << 20;
constexpr int index_depth_max = 4;
constexpr int folder_flags = O_RDONLY | O_DIRECTORY;

bool holds(int folder, const std::string& path) {
  return static_cast<bool>(Fd{files::open_beneath(folder, path, O_PATH, files::Links::none)});
}

bool is_oci_layout(int folder) {
  return holds(folder, "oci-layout") && holds(folder, "index.json");
}

bool is_docker_archive(int folder) {
  return holds(folder, "manifest.json") && !holds(folder, "usr") && !holds(folder, "bin");
}

Result<Fd> make_root(int draft) {
  if (::mkdirat(draft, "root", 0700) != 0)
    return files::store_failure("make folder", "root", errno);
  Fd root{files::open_beneath(draft, "root", folder_flags, files::Links::none)};
  if (!root) return files::store_failure("open", "root", errno);
  return root;
}

std::unexpected<Error> damaged(std::string_view what, std::string_view wanted,
                               std::string_view seen) {
  return fail(
      Errc::image_digest_mismatch,
      std::string{what} + ": should be " + std::string{wanted} + " and " + std::string{seen},
      "fetch it again: it was damaged or changed on the way");
}

std::unexpected<Error> digest_mismatch(std::string_view what, std::string_view wanted,
                                       std::string_view found) {
  return damaged(what, wanted, "is " + std::string{found});
}

Result<> check_expected(std::string_view what, const ImportOptions& options,
                        const std::string& found) {
  if (!options.expected_digest || *options.expected_digest == found) return {};
  return digest_mismatch(what, *options.expected_digest, found);
}

// The files of an image that is not unpacked yet: an OCI layout, or the content of a docker
// archive.
class Layout {
 public:
  Layout(int folder, const ImportOptions& options) : folder_(folder), options_(options) {}

  Result<Unpacked> unpack_oci(files::TreeWriter& into) const {
    BERTH_TRY(const std::string index, read_document("index.json", files::Links::none));
    BERTH_TRY(const Descriptor chosen, choose(index));
    BERTH_DO(check_expected("manifest", options_, chosen.digest));
    BERTH_TRY(const std::string manifest_text, read_blob(chosen));
    BERTH_TRY(const OciManifest manifest, parse_manifest(manifest_text));
    BERTH_TRY(const std::string config_text, read_blob(manifest.config));
    BERTH_TRY(const OciConfig config, parse_config(config_text, options_.wanted.architecture));
    BERTH_DO(check_layers(config, manifest.layers.size()));
    for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
      const Descriptor& layer = manifest.layers[i];
      BERTH_TRY(const Digests found, apply_layer(layer, into));
      BERTH_DO(check_content("layer " + layer.digest, config.diff_ids[i], found));
    }
    return Unpacked{ImageKind::oci, chosen.digest, config.architecture, config.config, {}};
  }

  // Such an archive names its layers by path. The digests of their content are in the config, whose
  // own digest is its name.
  Result<Unpacked> unpack_docker(files::TreeWriter& into) const {
    BERTH_TRY(const std::string text, read_document("manifest.json", files::Links::none));
    BERTH_TRY(const DockerManifest manifest, choose_docker_manifest(text, options_.wanted));
    BERTH_TRY(const std::string config_text, read_document(manifest.config, files::Links::beneath));
    const std::string digest = "sha256:" + sha256_hex(config_text);
    BERTH_DO(check_expected("config", options_, digest));
    BERTH_TRY(const OciConfig config, parse_config(config_text, options_.wanted.architecture));
    BERTH_DO(check_layers(config, manifest.layers.size()));
    for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
      const std::string name = "layer " + in_quotes(manifest.layers[i]);
      BERTH_TRY(const Fd file, open_file(manifest.layers[i], files::Links::beneath));
      Blob blob{file.get(), name, options_.limits.bytes_max, options_.stop};
      const Result<Digests> found = unpack(blob, files::ArchiveForm::layer, into);
      if (!found) return std::unexpected(damage_or(found.error(), file, name, config.diff_ids[i]));
      BERTH_DO(check_content(name, config.diff_ids[i], *found));
    }
    return Unpacked{ImageKind::docker, digest, config.architecture, config.config, {}};
  }

 private:
  static std::string blob_path(const Descriptor& descriptor) {
    return "blobs/sha256/" + descriptor.digest.substr(std::string_view{"sha256:"}.size());
  }

  static Result<> check_layers(const OciConfig& config, std::size_t layers) {
    if (config.diff_ids.size() == layers) return {};
    return fail(Errc::image_invalid, "config: names " + std::to_string(config.diff_ids.size()) +
                                         " layers, and the manifest has " + std::to_string(layers));
  }

  static Result<> check_content(const std::string& layer, const std::string& wanted,
                                const Digests& found) {
    if (found.content == wanted) return {};
    return digest_mismatch(layer + ", decompressed", wanted, found.content);
  }

  // An index may contain the indexes of several images, each with one manifest per platform.
  Result<Descriptor> choose(std::string index) const {
    Wanted wanted = options_.wanted;
    for (int depth = 0; depth < index_depth_max; ++depth) {
      BERTH_TRY(Descriptor chosen, choose_manifest(index, wanted));
      if (!is_index(chosen)) return chosen;
      BERTH_TRY(index, read_blob(chosen));
      wanted.reference.reset();
    }
    return fail(Errc::image_invalid, "index: holds an index in an index in an index");
  }

  Result<Fd> open_file(const std::string& path, files::Links links) const {
    Fd file{files::open_beneath(folder_, path, O_RDONLY | O_NONBLOCK, links)};
    struct stat seen{};
    if (!file || ::fstat(file.get(), &seen) != 0 || !S_ISREG(seen.st_mode)) {
      return fail(Errc::image_invalid, in_quotes(path) + ": is missing or no file of the layout",
                  "fetch the image again: a part of it is not there");
    }
    return file;
  }

  static Result<std::string> read_all(Blob& blob) {
    std::string text;
    while (true) {
      BERTH_TRY(const std::string_view bytes, blob.next());
      if (bytes.empty()) return text;
      text += bytes;
    }
  }

  Result<std::string> read_document(const std::string& path, files::Links links) const {
    BERTH_TRY(const Fd file, open_file(path, links));
    Blob blob{file.get(), path, document_bytes_max};
    return read_all(blob);
  }

  Result<std::string> read_blob(const Descriptor& descriptor) const {
    BERTH_TRY(const Fd file, open_file(blob_path(descriptor), files::Links::none));
    Blob blob{file.get(), "blob " + descriptor.digest, document_bytes_max};
    BERTH_TRY(std::string text, read_all(blob));
    BERTH_DO(check_blob("blob", descriptor, blob, blob.digest()));
    return text;
  }

  // Call after the whole blob has been read.
  static Result<> check_blob(std::string_view what, const Descriptor& described, const Blob& blob,
                             const std::string& found) {
    if (found != described.digest) return digest_mismatch(what, described.digest, found);
    if (blob.bytes() == described.size) return {};
    return fail(Errc::image_invalid,
                blob.name() + ": has " + std::to_string(blob.bytes()) +
                    " bytes, and the document above it says " + std::to_string(described.size),
                "have the image made anew: its documents contradict each other");
  }

  // A layer that was damaged in transit is often not a complete tar either; then the damage is what
  // to report.
  static Error damage_or(Error refused, const Descriptor& layer, Blob& blob) {
    if (refused.code != Errc::image_invalid || !blob.drain()) return refused;
    const std::string found = blob.digest();
    if (found == layer.digest) return refused;
    return digest_mismatch("layer", layer.digest, found).error();
  }

  // Until the caller has compared the content's digest, the tree is a draft.
  Result<Digests> apply_layer(const Descriptor& layer, files::TreeWriter& into) const {
    BERTH_TRY(const Fd file, open_file(blob_path(layer), files::Links::none));
    Blob blob{file.get(), "layer " + layer.digest, std::min(layer.size, options_.limits.bytes_max),
              options_.stop};
    Result<Digests> found = unpack(blob, files::ArchiveForm::layer, into);
    if (!found) return std::unexpected(damage_or(std::move(found).error(), layer, blob));
    BERTH_DO(check_blob("layer", layer, blob, found->stored));
    return found;
  }

  // The same if only the content's digest is known: the content is read once more.
  Error damage_or(Error refused, const Fd& file, const std::string& name,
                  const std::string& wanted) const {
    if (refused.code != Errc::image_invalid || ::lseek(file.get(), 0, SEEK_SET) != 0) {
      return refused;
    }
    Blob blob{file.get(), name, options_.limits.bytes_max, options_.stop};
    const Result<std::string> found = content_digest(blob, options_.limits);
    if (found && *found == wanted) return refused;
    if (found) return digest_mismatch(name + ", decompressed", wanted, *found).error();
    // Exceeding a limit is not damage: it is refused as such, and has no remedy.
    if (found.error().code != Errc::image_invalid || found.error().remedy.empty()) {
      return found.error();
    }
    return damaged(name, wanted, "cannot be decompressed (" + found.error().message + ")").error();
  }

  int folder_;
  const ImportOptions& options_;
};

Result<Unpacked> unpack_layout(int layout, Fd root, const ImportOptions& options, Meter& meter) {
  meter.begin(Phase::unpacking);
  files::TreeWriter into{std::move(root), {.limits = options.limits}, meter};
  const Layout layers{layout, options};
  Result<Unpacked> unpacked =
      is_oci_layout(layout) ? layers.unpack_oci(into) : layers.unpack_docker(into);
  if (!unpacked) return unpacked;
  BERTH_DO(into.finish());
  unpacked->tally = into.tally();
  return unpacked;
}

Result<Unpacked> copy_directory(int from, Fd root, const ImportOptions& options, Meter& meter) {
  if (options.expected_digest) {
    return fail(Errc::validation_failed, "a directory has no digest to compare",
                "leave the digest out, or import a tar or an OCI layout");
  }
  meter.begin(Phase::copying);
  files::TreeWriter into{std::move(root), {.limits = options.limits}, meter};
  BERTH_DO(files::copy_tree(from, into, {.rules = files::Rules::image}, meter));
  BERTH_DO(into.finish());
  return Unpacked{ImageKind::directory, {}, options.wanted.architecture, {}, into.tally()};
}

// A tar of a tree and a tar of an image cannot be distinguished before the last entry. So it is
// unpacked first and inspected then.
Result<Unpacked> unpack_tar(int tar, const std::string& name, int draft,
                            const ImportOptions& options, Meter& meter) {
  meter.begin(Phase::unpacking);
  BERTH_TRY(Fd root, make_root(draft));
  files::TreeWriter into{std::move(root), {.limits = options.limits}, meter};
  Blob blob{tar, name, options.limits.bytes_max, options.stop};
  BERTH_TRY(const Digests digests, unpack(blob, files::ArchiveForm::plain, into));
  BERTH_DO(into.finish());
  const Fd unpacked{files::open_beneath(draft, "root", folder_flags, files::Links::none)};
  if (!unpacked) return files::store_failure("open", "root", errno);
  if (is_oci_layout(unpacked.get()) || is_docker_archive(unpacked.get())) {
    if (::renameat(draft, "root", draft, "layout") != 0) {
      return files::store_failure("move", "root", errno);
    }
    BERTH_TRY(Fd tree, make_root(draft));
    return unpack_layout(unpacked.get(), std::move(tree), options, meter);
  }
  BERTH_DO(check_expected(name, options, digests.stored));
  return Unpacked{ImageKind::tar, digests.stored, options.wanted.architecture, {}, into.tally()};
}

}  // namespace

Result<Unpacked> unpack_source(const std::string& source, int draft, const ImportOptions& options,
                               Meter& meter) {
  if (options.expected_digest && !is_digest(*options.expected_digest)) {
    return fail(Errc::validation_failed,
                in_quotes(*options.expected_digest) + " is not a digest of the form sha256:HEX");
  }
  const Fd from{::open(source.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!from && errno == ENOENT) return fail(Errc::file_not_found, source + ": is not there");
  struct stat seen{};
  if (!from || ::fstat(from.get(), &seen) != 0) return files::store_failure("open", source, errno);
  if (!S_ISDIR(seen.st_mode)) return unpack_tar(from.get(), source, draft, options, meter);
  BERTH_TRY(Fd root, make_root(draft));
  if (is_oci_layout(from.get()) || is_docker_archive(from.get())) {
    return unpack_layout(from.get(), std::move(root), options, meter);
  }
  return copy_directory(from.get(), std::move(root), options, meter);
}

}  // namespace berth::images
