#pragma once

#include "base/json/json.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

// What an image specifies for the processes that are started from it.
struct ImageConfig {
  std::map<std::string, std::string> env = {};
  std::string user = {};     // as written: "name", "uid", "uid:gid"; empty: the default
  std::string workdir = {};  // empty: the default
  std::vector<std::string> entrypoint = {};
  std::vector<std::string> cmd = {};
  std::map<std::string, std::string> labels = {};

  friend bool operator==(const ImageConfig&, const ImageConfig&) = default;
};
BOOST_DESCRIBE_STRUCT(ImageConfig, (), (env, user, workdir, entrypoint, cmd, labels))

// host: this machine's own /usr, so there is nothing to unpack.
BOOST_DEFINE_ENUM_CLASS(ImageKind, host, directory, tar, oci, docker)

// The content of image.json.
struct ImageRecord {
  std::string digest;       // "sha256:..." of the tree and the config; "host" for the built-in one
  std::string tree_digest;  // "sha256:..." of the tree alone, which `verify` recomputes
  ImageKind kind = ImageKind::host;
  std::optional<std::string> source_digest;  // of the manifest, or of the tar as given
  std::string architecture;
  std::uint64_t bytes = 0;    // of all files, including holes
  std::uint64_t entries = 0;  // files, folders and links
  std::uint64_t set_id_bits_removed = 0;
  std::uint64_t devices_skipped = 0;
  std::optional<Time> created_at;  // absent for the host's
  ImageConfig config;
  // Digests of later sources: other bytes, but the same tree and config.
  std::optional<std::vector<std::string>> other_source_digests = {};
};
BOOST_DESCRIBE_STRUCT(ImageRecord, (),
                      (digest, tree_digest, kind, source_digest, architecture, bytes, entries,
                       set_id_bits_removed, devices_skipped, created_at, config,
                       other_source_digests))

// The digests of everything that it was imported from.
std::vector<std::string> sources_of(const ImageRecord& image);

struct Image : ImageRecord {
  std::vector<std::string> names;    // that refer to it, "debian:bookworm"
  std::vector<std::string> holders;  // that use it: sandbox ids, "template-ID"
};
BOOST_DESCRIBE_STRUCT(Image, (ImageRecord), (names, holders))

inline constexpr std::string_view host_name = "host";
Image host_image();

// Marks a name's file while it is being written. No name contains it.
inline constexpr std::string_view name_draft_mark = ".new.";

// "debian", "team/tools:1.2": lower case, with a tag after a colon; the default tag is "latest".
struct ImageName {
  std::string name;
  std::string tag;

  std::string str() const { return name + ":" + tag; }
};
Result<ImageName> parse_image_name(std::string_view text);

// "sha256:" and 64 lower-case hexadecimal digits.
bool is_digest(std::string_view text);
// The digest of an image: of its tree and its config together.
std::string image_digest(std::string_view tree_digest, const ImageConfig& config);

// This machine's architecture as images spell it: "amd64", "arm64".
std::string machine_architecture();

}  // namespace berth::images
