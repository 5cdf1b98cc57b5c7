#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "images/image.hpp"
#include "images/progress.hpp"
#include "images/source.hpp"
#include "images/store_folder.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

// What `remove` or `gc` took away.
struct Removed {
  std::vector<std::string> names = {};
  std::vector<std::string> digests = {};  // of images that are gone
  std::uint64_t bytes = 0;                // of their files
  std::uint64_t drafts = 0;               // that dead processes left
};
BOOST_DESCRIBE_STRUCT(Removed, (), (names, digests, bytes, drafts))

// What gc leaves alone though it has no name and nobody has a use for it.
struct Spared {
  std::optional<Time> made_after = {};
};

// An environment and what its sandboxes start from.
struct EnvironmentImage {
  std::string id;
  std::string name;
  std::string image;  // by whatever `find` knows it

  friend bool operator==(const EnvironmentImage&, const EnvironmentImage&) = default;
};
BOOST_DESCRIBE_STRUCT(EnvironmentImage, (), (id, name, image))

// What to do about an image that environments name.
enum class IfNamed { refuse, remove };

// Images that are unpacked, each once, as read-only trees:
//
//   by-digest/sha256-HEX/root/       the tree
//   by-digest/sha256-HEX/image.json  ImageRecord
//   by-digest/sha256-HEX/holds/ID    who works with it
//   names/NAME:TAG                   the digest; '/' is written '+'
//   environments.json                which images the server's environments name
//   drafts/                          what is being made or removed
//   lock
//
// All calls block; a server makes them on its pool. Several threads and processes may use one
// folder. A failed or killed import leaves no image, and at most a draft, which the next import or
// gc removes.
class ImageStore {
 public:
  static Result<ImageStore> open(const std::string& folder);

  // Errors: file_not_found, image_invalid, image_digest_mismatch, store_full, io_failed.
  Result<Image> import(const std::string& source, const std::string& name,
                       const ImportOptions& options = {}, const ProgressSink& progress = {}) const;
  // By name, by digest, by the digest of what it was imported from, or by the start of its digest;
  // "host" is always there.
  Result<Image> find(std::string_view named) const;
  // In order of name; images without one last.
  Result<std::vector<Image>> list() const;
  // A name goes; the image goes with its last name. By digest, the image and all its names go.
  // image_in_use when somebody holds it, or an environment would not find it any more.
  Result<Removed> remove(std::string_view named, IfNamed if_named = IfNamed::refuse) const;
  // Images that have no name or cannot be read, that nobody holds and no environment names; drafts
  // of the dead; names that lead nowhere.
  Result<Removed> gc(const Spared& spared = {}) const;
  // image_digest_mismatch when the tree is not what it was when it was imported.
  Result<> verify(const Image& image, const ProgressSink& progress = {}) const;

  // For a lease: the image stays until `release`, also when the server is restarted between.
  Result<> hold(const std::string& digest, const std::string& holder) const;
  Result<> release(const std::string& digest, const std::string& holder) const;
  // For a process: the image stays until the descriptor is closed, however that comes.
  Result<Fd> pin(const std::string& digest) const;

  // The environments of all companies, whenever they change. What is written here is also minded
  // while no server runs.
  Result<> note_environments(const std::vector<EnvironmentImage>& all) const;

  // The tree; empty for the host's, which has none of its own.
  std::string root_of(const Image& image) const;

 private:
  ImageStore(StoreFolder folder, std::string names)
      : folder_(std::move(folder)), names_(std::move(names)) {}

  Result<ImageRecord> make(const Draft& draft, const std::string& source,
                           const ImportOptions& options, Meter& meter) const;
  Result<> publish(Draft draft, const ImageRecord& record, const ImageName& name,
                   Meter& meter) const;
  Result<bool> is_damaged(const std::string& digest, Meter& meter) const;
  Result<> verify_tree(const Image& image, Meter& meter) const;
  Result<Draft> retire_damaged(const std::string& digest) const;
  Result<> add_sources(const std::string& digest, const std::vector<std::string>& sources) const;
  Result<std::vector<EnvironmentImage>> environments() const;
  Result<> check_environments(const Image& image, const std::vector<std::string>& names) const;
  Result<Image> read(const std::string& thing) const;
  Result<Image> find_by_digest(std::string_view named) const;
  Result<std::vector<std::string>> names_for(std::string_view digest) const;
  Result<> drop_dangling_names() const;
  std::string name_file(const ImageName& name) const;

  StoreFolder folder_;
  std::string names_;
};

}  // namespace berth::images
