#pragma once

#include "execution/execution.hpp"

#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Files of a place that is no folder of this machine: they are looked at and moved by whoever
// reaches the place.
namespace berth::execution {

// A way in such a place: from a folder that the place itself named, by names that were checked.
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
  struct stat status = {};  // type and mode, size, links, time
  std::string target = {};  // of a symbolic link, as it is written
};

// A link at the end is described itself. No other is followed.
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

// Where on this machine files are that are on their way: below this folder, and where whoever
// reaches the place moves whole files and folders by itself, in folders of that user.
struct Exchange {
  enum class By { commands, provider };
  By by = By::commands;
  std::string folder = {};
  std::optional<FileRoot::User> user = {};
};

// What comes from there is untrusted, its length too. Of what goes there, the place has the old or
// the whole new one; only a failure of the moves of a folder's content can leave a part. Paths are
// of the place unless they are called local.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  virtual Task<RemoteLook> look(const PlaceRef& lease, const RemotePath& path) = 0;
  // In no order.
  virtual Task<RemoteListing> list(const PlaceRef& lease, const RemotePath& path,
                                   std::size_t entries_max) = 0;
  virtual Task<> remove(const PlaceRef& lease, const RemotePath& path) = 0;
  // Exactly so many bytes of a file; `conflict` when they are not there.
  virtual Task<std::string> read(const PlaceRef& lease, const RemotePath& path,
                                 std::uint64_t offset, std::uint64_t count) = 0;
  // Folders above it are made.
  virtual Task<> write(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                       std::string_view bytes) = 0;
  // A folder or a file as the place's own tar makes one; more than `bytes_max` when it is cut.
  virtual Task<std::string> pack(const PlaceRef& lease, const RemotePath& path,
                                 std::size_t bytes_max) = 0;
  // Into a folder, which is made as needed: folders are joined, all else is replaced.
  virtual Task<> unpack(const PlaceRef& lease, const RemotePath& path, std::string_view tar) = 0;
  // What a pipe, a device or a second name is, below a folder: the first of them, from there.
  virtual Task<std::optional<std::string>> find_unfit(const PlaceRef& lease,
                                                      const RemotePath& path) = 0;

  // By commands: with the verbs above. By the provider: with these.
  virtual Exchange exchange(const PlaceRef& lease, const RemotePath& path) = 0;
  // `local` is not there yet.
  virtual Task<> fetch(const PlaceRef& lease, const RemotePath& path, mode_t type,
                       const std::string& local) = 0;
  virtual Task<> send_file(const PlaceRef& lease, const RemotePath& path, mode_t mode,
                           const std::string& local, std::uint64_t bytes) = 0;
  // As `unpack`.
  virtual Task<> send_folder(const PlaceRef& lease, const RemotePath& path,
                             const std::string& local) = 0;
};

}  // namespace berth::execution
