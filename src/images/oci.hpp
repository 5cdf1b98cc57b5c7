#pragma once

#include "base/json/json.hpp"
#include "images/image.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The documents of an OCI image and of a docker archive: decoding and choosing. No I/O.
namespace berth::images {

struct Platform {
  std::optional<std::string> architecture;
  std::optional<std::string> os;
};
BOOST_DESCRIBE_STRUCT(Platform, (), (architecture, os))

struct Descriptor {
  std::optional<std::string> media_type;
  std::string digest;
  std::uint64_t size = 0;
  std::optional<std::map<std::string, std::string>> annotations;
  std::optional<Platform> platform;
};
BOOST_DESCRIBE_STRUCT(Descriptor, (), (media_type, digest, size, annotations, platform))

struct OciManifest {
  Descriptor config;
  std::vector<Descriptor> layers;
};
BOOST_DESCRIBE_STRUCT(OciManifest, (), (config, layers))

struct OciConfig {
  std::string architecture;
  ImageConfig config;
  std::vector<std::string> diff_ids;  // digests of the uncompressed layers
};

// One image in the manifest.json of a docker archive: paths in the archive.
struct DockerManifest {
  std::string config;
  std::vector<std::string> layers;
  std::vector<std::string> tags;
};

// What to choose if a document offers several.
struct Wanted {
  std::string architecture = machine_architecture();
  std::optional<std::string> reference = {};  // "org.opencontainers.image.ref.name", or a tag
};

// Errors are image_invalid and name the document.
Result<Descriptor> choose_manifest(std::string_view index, const Wanted& wanted);
bool is_index(const Descriptor& descriptor);
Result<OciManifest> parse_manifest(std::string_view text);
// The config of an image for Linux and the architecture.
Result<OciConfig> parse_config(std::string_view text, std::string_view architecture);
Result<DockerManifest> choose_docker_manifest(std::string_view text, const Wanted& wanted);

}  // namespace berth::images
