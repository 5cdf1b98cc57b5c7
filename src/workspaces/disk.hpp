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

// The system calls that this folder makes on trees that somebody else may change at any moment.
// Each works below a descriptor and follows no symbolic link.
namespace berth::workspaces {

// refused: the tree is one folder of one file system. entered: the root of a sandbox is put
// together from mounts, which all belong to it.
enum class Mounts { refused, entered };

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

// What the kernel said, as a caller sees it: file_not_found, path_refused where the kernel enforced
// one of our rules or a permission, store_full for a disk without room, io_failed for the rest.
std::unexpected<Error> disk_failure(std::string_view action, std::string_view path,
                                    int error_number);

// -1 and errno. The path is relative to the folder.
int open_beneath(int folder, const std::string& path, int flags, Mounts mounts, mode_t mode = 0);

// A thing in the tree, held but not opened: looking at a device or a pipe does nothing to it.
struct Found {
  Fd at;  // O_PATH
  struct stat status = {};

  bool is_directory() const { return S_ISDIR(status.st_mode); }
};
// `path` leads from the folder, `shown` is how the caller knows it. A link at the end is found
// itself. What lies on a file system of the kernel's own, such as /proc, is refused: through it
// a server that is root would tell more than the sandbox may know.
Result<Found> find(int folder, const std::string& path, Mounts mounts, std::string_view shown);

// The names in a folder, one by one, without "." and "..".
class Names {
 public:
  // From any descriptor of it, O_PATH too.
  static Result<Names> of(int folder, std::string_view shown);
  // Nothing at the end.
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
// Owner first, because a change of owner takes mode bits away.
Result<> set_look(int fd, mode_t mode, const std::optional<Owner>& owner, std::string_view shown);
// The path of an open descriptor of ours, for calls that take no O_PATH descriptor.
std::string path_of(int fd);
// Times of files as the API tells and takes them, in milliseconds.
Time time_of(const timespec& at);
timespec timespec_of(Time at);
// A name that nobody guesses, for what is not yet finished.
std::string draft_name();
bool is_draft_name(std::string_view name);

}  // namespace berth::workspaces
