#include "base/remove_tree.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"
#include "base/random.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace berth {
namespace {

constexpr int open_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_denied(int error_number) {
  return error_number == EACCES || error_number == EPERM;
}

// Never follows a link, even if another process has replaced the folder with one meanwhile.
bool make_enterable(int parent, const std::string& name) {
  return ::fchmodat(parent, name.c_str(), 0700, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<Directory> as_directory(Fd folder, const std::string& name) {
  Directory directory{::fdopendir(folder.get())};
  if (!directory) return io_failure("open", name, errno);
  [[maybe_unused]] const int owned_by_stream = folder.release();
  return directory;
}

// A folder that its owner may not enter or change is made enterable first.
Result<Directory> open_directory(int parent, const std::string& name) {
  Fd folder{::openat(parent, name.c_str(), open_flags)};
  if (!folder && is_denied(errno) && make_enterable(parent, name)) {
    folder = Fd{::openat(parent, name.c_str(), open_flags)};
  }
  if (!folder) return io_failure("open", name, errno);
  return as_directory(std::move(folder), name);
}

std::vector<std::string> names_of(const Directory& directory) {
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Every folder below the top is moved up to the top before it is read. So at most two folders are
// open at a time and no path is longer than one name, however deep the tree is.
class Removal {
 public:
  Removal(Directory top, std::string spared) : top_(std::move(top)), spared_(std::move(spared)) {
    SystemRandom random;
    prefix_ = "removed-" + random_base64url(random, 9) + "-";
  }

  Result<> run() {
    for (const std::string& name : names_of(top_)) {
      if (name == spared_) continue;
      BERTH_TRY(const bool is_directory, unlink(fd(), name));
      if (is_directory) waiting_.push_back(name);
    }
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      BERTH_DO(empty(name));
      if (::unlinkat(fd(), name.c_str(), AT_REMOVEDIR) != 0) {
        return io_failure("remove", name, errno);
      }
    }
    return {};
  }

 private:
  int fd() const { return ::dirfd(top_.get()); }

  // Returns whether it is a folder, and so was not removed.
  static Result<bool> unlink(int folder, const std::string& name) {
    int error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
    if (is_denied(error_number) && ::fchmod(folder, 0700) == 0) {
      error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
    }
    if (error_number == EISDIR) return true;
    if (error_number != 0 && error_number != ENOENT) {
      return io_failure("remove", name, error_number);
    }
    return false;
  }

  Result<> empty(const std::string& name) {
    BERTH_TRY(const Directory directory, open_directory(fd(), name));
    const int folder = ::dirfd(directory.get());
    for (const std::string& inner : names_of(directory)) {
      BERTH_TRY(const bool is_directory, unlink(folder, inner));
      if (is_directory) BERTH_DO(move_up(folder, inner));
    }
    return {};
  }

  // Moving a folder changes its "..", so it must be writable itself.
  Result<> move_up(int folder, const std::string& name) {
    std::string fresh = prefix_ + std::to_string(++last_);
    int error_number = ::renameat(folder, name.c_str(), fd(), fresh.c_str()) == 0 ? 0 : errno;
    if (is_denied(error_number) && ::fchmod(folder, 0700) == 0 && make_enterable(folder, name)) {
      error_number = ::renameat(folder, name.c_str(), fd(), fresh.c_str()) == 0 ? 0 : errno;
    }
    if (error_number != 0) return io_failure("remove", name, error_number);
    waiting_.push_back(std::move(fresh));
    return {};
  }

  Directory top_;
  std::string spared_;
  std::string prefix_;
  std::vector<std::string> waiting_;  // folders in the top that still have to be emptied
  std::size_t last_ = 0;
};

Result<> empty(Directory top, const std::string& shown, const std::string& spared) {
  Result<> emptied = Removal{std::move(top), spared}.run();
  if (!emptied) emptied.error().message = shown + ": " + emptied.error().message;
  return emptied;
}

}  // namespace

Result<> empty_folder(Fd folder, const std::string& shown, const std::string& spared) {
  BERTH_TRY(Directory top, as_directory(std::move(folder), shown));
  return empty(std::move(top), shown, spared);
}

Result<> remove_tree(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return io_failure("remove", path, errno);
  }
  if (!S_ISDIR(found.st_mode)) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
    return {};
  }
  BERTH_TRY(Directory top, open_directory(AT_FDCWD, path));
  BERTH_DO(empty(std::move(top), path, {}));
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
  return {};
}

}  // namespace berth
