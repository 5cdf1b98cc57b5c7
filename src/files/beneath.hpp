#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// System calls on trees that other processes may change at any time. Each works below a descriptor,
// and only where its arguments say so follows a symbolic link.
namespace berth::files {

// refused: the tree is one folder of one file system. entered: a sandbox's root consists of several
// mounts, which all belong to it.
enum class Mounts { refused, entered };

// Which links may be followed. None can lead out of the root.
enum class Links {
  none,
  beneath,
  as_inside,  // absolute ones too, relative to the root
};

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

// The kernel's error for a path that a caller named: file_not_found, path_refused if the kernel
// enforced one of our rules or a permission, store_full for a full disk, io_failed otherwise.
std::unexpected<Error> disk_failure(std::string_view action, std::string_view path,
                                    int error_number);
// The same for a tree of our own, where no rule explains a failure: store_full or io_failed.
std::unexpected<Error> store_failure(std::string_view action, std::string_view object,
                                     int error_number);

// openat2 below a folder; the path is relative to it. -1 and errno on failure: ELOOP for a link
// that may not be followed, EXDEV for a path that leads out or onto a mount that may not be
// entered.
int open_beneath(int folder, const std::string& path, int flags, Mounts mounts, mode_t mode = 0);
// The same across mounts and, as far as they may be followed, links.
int open_beneath(int root, const std::string& path, int flags, Links links);

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
// All of them, in byte order.
Result<std::vector<std::string>> names_of(int folder, std::string_view shown);

// A file or folder whose owner may have removed their own access. That does not affect root. If
// this process is the owner and not root, the object unlocks it during its lifetime and then
// restores the mode. Any process that could observe that could have done it too.
class Unlocked {
 public:
  // If the result is empty, errno is set.
  static Unlocked open(int folder, const std::string& name, int flags);
  static Unlocked open_as_it_is(int folder, const std::string& name, int flags);
  Unlocked() = default;
  Unlocked(Unlocked&& other) noexcept = default;
  Unlocked& operator=(Unlocked&& other) = delete;
  ~Unlocked();

  int get() const { return opened_.get(); }
  explicit operator bool() const { return static_cast<bool>(opened_); }

 private:
  Fd named_;  // set only if it was locked
  mode_t mode_ = 0;
  Fd opened_;
};

// The target of a symbolic link; path_refused if it is longer. An empty name is the folder's own
// descriptor, which is the link.
Result<std::string> read_link(int folder, const std::string& name, std::string_view shown,
                              std::size_t bytes_max = 4095);
Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view shown);
// Owner first, because a change of owner clears mode bits.
Result<> set_look(int fd, mode_t mode, const std::optional<Owner>& owner, std::string_view shown);
// A file or link, or a folder with all its content. path_refused for a mount point and for more
// than `entries_max` entries; conflict if another process writes there meanwhile.
Result<> remove_beneath(int folder, const std::string& name, std::string_view shown,
                        std::uint64_t entries_max);
// The path of an open descriptor, for calls that take no O_PATH descriptor.
std::string path_of(int fd);
// File times as the API reports and accepts them, in milliseconds.
Time time_of(const timespec& at);
timespec timespec_of(Time at);

}  // namespace berth::files
