#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "workspaces/limits.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>

// System calls on trees that other processes may change at any time. Each works below a descriptor
// and follows no symbolic link.
namespace berth::workspaces {

// refused: the tree is one folder of one file system. entered: a sandbox's root consists of several
// mounts, which all belong to it.
enum class Mounts { refused, entered };

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

// The kernel's error, as a caller sees it: file_not_found, path_refused if the kernel enforced one
// of our rules or a permission, store_full for a full disk, io_failed otherwise.
std::unexpected<Error> disk_failure(std::string_view action, std::string_view path,
                                    int error_number);

// -1 and errno on failure. The path is relative to the folder.
int open_beneath(int folder, const std::string& path, int flags, Mounts mounts, mode_t mode = 0);

// An entry of the tree, held but not opened: this does nothing to a device or a pipe.
struct Found {
  Fd at;  // O_PATH
  struct stat status = {};

  bool is_directory() const { return S_ISDIR(status.st_mode); }
};
// `path` is relative to the folder, `shown` is how the caller knows it. A link at the end is found
// itself. Entries on the kernel's own file systems, such as /proc, are refused: through them a
// server that is root would reveal more than the sandbox may know.
Result<Found> find(int folder, const std::string& path, Mounts mounts, std::string_view shown);

// The names in a folder, one by one, without "." and "..".
class Names {
 public:
  // From any descriptor of it, even O_PATH.
  static Result<Names> of(int folder, std::string_view shown);
  // Empty at the end.
  Result<std::optional<std::string>> next();
  int folder() const { return ::dirfd(directory_.get()); }

 private:
  Names(Directory directory, std::string shown)
      : directory_(std::move(directory)), shown_(std::move(shown)) {}

  Directory directory_;
  std::string shown_;
};

Result<std::string> read_link(int folder, const std::string& name, std::string_view shown);
Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view shown);
// Owner first, because a change of owner clears mode bits.
Result<> set_look(int fd, mode_t mode, const std::optional<Owner>& owner, std::string_view shown);
// The path of an open descriptor, for calls that take no O_PATH descriptor.
std::string path_of(int fd);
// File times as the API reports and accepts them, in milliseconds.
Time time_of(const timespec& at);
timespec timespec_of(Time at);
// An unguessable name for an unfinished entry.
std::string draft_name();
bool is_draft_name(std::string_view name);

}  // namespace berth::workspaces
