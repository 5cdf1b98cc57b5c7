#pragma once

#include "places/files.hpp"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Files of a place that is not a folder of this machine. The place itself reads and moves them.
namespace berth::places {

// A path in such a place: a folder that the place itself reported, then names that were checked.
struct RemotePath {
  std::string folder;     // absolute
  std::string rest = {};  // "a/b", without "." and ".."; empty: the folder itself

  std::string text() const {
    if (rest.empty()) return folder;
    return folder.ends_with('/') ? folder + rest : folder + "/" + rest;
  }
};

struct RemoteEntry {
  std::string name = {};    // exact bytes
  struct stat status = {};  // type and mode, size, link count, time
  std::string target = {};  // of a symbolic link, unresolved
};

// Describes a link at the end of the path itself. No other link is followed.
struct RemoteLook {
  enum class Way { there, missing, through_link, through_file };
  Way way = Way::missing;
  RemoteEntry entry = {};
};

struct RemoteListing {
  enum class Extent { whole, cut };
  std::vector<RemoteEntry> entries = {};
  Extent extent = Extent::whole;
};

// Where files in transit are on this machine: below this folder. If the provider moves whole files
// and folders itself, they are in folders owned by `user`.
struct Exchange {
  enum class By { commands, provider };
  By by = By::commands;
  std::string folder = {};
  std::optional<FileRoot::User> user = {};
};

// Everything received is untrusted, including its length. A write leaves either the old or the
// complete new content; only a failure while moving a folder's content can leave a part. Paths are
// in the place unless they are called local.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  virtual Task<RemoteLook> look(const PlaceRef& lease, const RemotePath& path) = 0;
  // In no particular order.
  virtual Task<RemoteListing> list(const PlaceRef& lease, const RemotePath& path,
                                   std::size_t entries_max) = 0;
  virtual Task<> remove(const PlaceRef& lease, const RemotePath& path) = 0;
  // Reads exactly `count` bytes of a file; `conflict` if it is shorter.
  virtual Task<std::string> read(const PlaceRef& lease, const RemotePath& path,
                                 std::uint64_t offset, std::uint64_t count) = 0;
  // Creates parent folders.
  virtual Task<> write(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                       std::string_view bytes) = 0;
  // A folder or file as an archive from the place's own tar; longer than `bytes_max` if it was cut.
  virtual Task<std::string> pack(const PlaceRef& lease, const RemotePath& path,
                                 std::size_t bytes_max) = 0;
  // Into a folder, which is created as needed: folders are merged, everything else is replaced.
  virtual Task<> unpack(const PlaceRef& lease, const RemotePath& path, std::string_view tar) = 0;
  // The relative path of the first pipe, device or hard link below a folder.
  virtual Task<std::optional<std::string>> find_unfit(const PlaceRef& lease,
                                                      const RemotePath& path) = 0;

  // `commands`: use the operations above. `provider`: use those below.
  virtual Exchange exchange(const PlaceRef& lease, const RemotePath& path) = 0;
  // `local` must not exist yet.
  virtual Task<> fetch(const PlaceRef& lease, const RemotePath& path, mode_t type,
                       const std::string& local) = 0;
  virtual Task<> send_file(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                           const std::string& local, std::uint64_t bytes) = 0;
  // Same as `unpack`.
  virtual Task<> send_folder(const PlaceRef& lease, const RemotePath& path,
                             const std::string& local) = 0;
};

}  // namespace berth::places
