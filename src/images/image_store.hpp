#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "files/progress.hpp"
#include "images/image.hpp"
#include "images/source.hpp"
#include "images/store_folder.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

// What `remove` or `gc` deleted.
struct Removed {
  std::vector<std::string> names = {};
  std::vector<std::string> digests = {};  // of deleted images
  std::uint64_t bytes = 0;                // of their files
  std::uint64_t drafts = 0;               // left by dead processes
};
BOOST_DESCRIBE_STRUCT(Removed, (), (names, digests, bytes, drafts))

// What gc keeps even though it has no name and is not used.
struct Spared {
  std::optional<Time> made_after = {};
};

// An environment and what its sandboxes start from.
struct EnvironmentImage {
  std::string id;
  std::string name;
  std::string image;  // anything that `find` accepts

  friend bool operator==(const EnvironmentImage&, const EnvironmentImage&) = default;
};
BOOST_DESCRIBE_STRUCT(EnvironmentImage, (), (id, name, image))

// What to do about an image that environments name.
enum class IfNamed { refuse, remove };

// Unpacked images, each stored once, as read-only trees:
//
//   by-digest/sha256-HEX/root/       the tree
//   by-digest/sha256-HEX/image.json  ImageRecord
//   by-digest/sha256-HEX/holds/ID    a holder of the image
//   names/NAME:TAG                   the digest; '/' is written '+'
//   environments.json                which images the server's environments name
//   drafts/                          images being made or removed
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
  // By name, digest, source digest, or the beginning of its digest; "host" always exists.
  Result<Image> find(std::string_view named) const;
  // Sorted by name; images without one last.
  Result<std::vector<Image>> list() const;
  // Removes a name, and the image with its last name. By digest, removes the image and all its
  // names. image_in_use if it is held, or if an environment would not find it any more.
  Result<Removed> remove(std::string_view named, IfNamed if_named = IfNamed::refuse) const;
  // Removes images without a name or that cannot be read, unless they are held or an environment
  // names them; drafts of dead processes; dangling names.
  Result<Removed> gc(const Spared& spared = {}) const;
  // image_digest_mismatch if the tree has changed since it was imported.
  Result<> verify(const Image& image, const ProgressSink& progress = {}) const;

  // For a lease: keeps the image until `release`, even across a server restart.
  Result<> hold(const std::string& digest, const std::string& holder) const;
  Result<> release(const std::string& digest, const std::string& holder) const;
  // For a process: keeps the image until the descriptor is closed, even by a crash.
  Result<Fd> pin(const std::string& digest) const;

  // Records the environments of all companies; called whenever they change. The record also counts
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
