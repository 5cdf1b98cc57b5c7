#include "base/remove_tree.hpp"

#include "base/files.hpp"
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

using RemoveResult = std::expected<void, RemoveFailure>;

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool is_denied(int error_number) {
  return error_number == EACCES || error_number == EPERM;
}

bool is_mount_point(int folder) {
  struct statx seen{};
  return ::statx(folder, "", AT_EMPTY_PATH, 0, &seen) == 0 &&
         (seen.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

// Empty with errno on failure. A folder that its owner closed is opened to the owner. It is held
// first, because its name could be a link to somewhere else by now.
Fd open_to_empty(int parent, const std::string& name) {
  Fd folder{::openat(parent, name.c_str(), folder_flags)};
  if (!folder && is_denied(errno)) {
    const Fd held{::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    const std::string itself = "/proc/self/fd/" + std::to_string(held.get());
    if (!held || ::chmod(itself.c_str(), 0700) != 0) return {};
    folder = Fd{::openat(held.get(), ".", folder_flags)};
  }
  if (!folder || !is_mount_point(folder.get())) return folder;
  errno = EBUSY;
  return {};
}

// Every folder below the top is moved up to the top before it is read. So at most two folders are
// open at a time and no path is longer than one name, however deep the tree is.
class Removal {
 public:
  Removal(Fd top, std::string spared, std::uint64_t entries_max)
      : top_(std::move(top)), spared_(std::move(spared)), left_(entries_max) {
    SystemRandom random;
    prefix_ = "removed-" + random_base64url(random, 9) + "-";
  }

  RemoveResult run() {
    if (RemoveResult emptied = empty(top_.get()); !emptied) return emptied;
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      const Fd folder = open_to_empty(top_.get(), name);
      if (!folder) return failure(name, errno);
      if (RemoveResult emptied = empty(folder.get()); !emptied) return emptied;
      if (::unlinkat(top_.get(), name.c_str(), AT_REMOVEDIR) != 0) return failure(name, errno);
    }
    return {};
  }

 private:
  static std::unexpected<RemoveFailure> failure(const std::string& name, int error_number) {
    return std::unexpected(RemoveFailure{error_number == EEXIST ? ENOTEMPTY : error_number, name});
  }

  RemoveResult empty(int folder) {
    const auto names = names_to_remove(folder);
    if (!names) return failure(".", names.error());
    for (const std::string& name : *names) {
      int error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
      if (is_denied(error_number) && ::fchmod(folder, 0700) == 0) {
        error_number = ::unlinkat(folder, name.c_str(), 0) == 0 ? 0 : errno;
      }
      if (error_number == EISDIR) error_number = set_aside(folder, name);
      if (error_number != 0 && error_number != ENOENT) return failure(name, error_number);
    }
    return {};
  }

  std::expected<std::vector<std::string>, int> names_to_remove(int folder) {
    // Not opened anew, because a folder may be readable and closed.
    Fd own{::fcntl(folder, F_DUPFD_CLOEXEC, 0)};
    const Directory directory{own ? ::fdopendir(own.get()) : nullptr};
    if (!directory) return std::unexpected(errno);
    [[maybe_unused]] const int owned_by_stream = own.release();
    std::vector<std::string> names;
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      const bool is_spared = folder == top_.get() && name == spared_;
      if (name == "." || name == ".." || is_spared) continue;
      if (left_-- == 0) return std::unexpected(E2BIG);
      names.emplace_back(name);
    }
    // A folder that is removed while it is read has no more names.
    if (errno != 0 && errno != ENOENT) return std::unexpected(errno);
    return names;
  }

  // Moving a folder changes its "..", so it must be writable itself.
  int set_aside(int folder, const std::string& name) {
    if (folder == top_.get()) {
      waiting_.push_back(name);
      return 0;
    }
    std::string fresh = prefix_ + std::to_string(++last_);
    const auto move = [&] {
      return ::renameat(folder, name.c_str(), top_.get(), fresh.c_str()) == 0 ? 0 : errno;
    };
    int error_number = move();
    if (is_denied(error_number) && ::fchmod(folder, 0700) == 0) {
      const Fd inner = open_to_empty(folder, name);
      if (inner && ::fchmod(inner.get(), 0700) == 0) error_number = move();
    }
    if (error_number == 0) waiting_.push_back(std::move(fresh));
    return error_number;
  }

  Fd top_;
  std::string spared_;
  std::uint64_t left_;
  std::string prefix_;
  std::vector<std::string> waiting_;  // folders in the top that still have to be emptied
  std::uint64_t last_ = 0;
};

}  // namespace

std::expected<void, RemoveFailure> remove_at(int parent, const std::string& name,
                                             std::uint64_t entries_max) {
  const auto failure = [&name](int error_number) {
    return std::unexpected(RemoveFailure{error_number, name});
  };
  if (::unlinkat(parent, name.c_str(), 0) == 0) return {};
  if (errno != EISDIR) return failure(errno);
  Fd top = open_to_empty(parent, name);
  if (!top) return failure(errno);
  if (RemoveResult emptied = Removal{std::move(top), {}, entries_max}.run(); !emptied) {
    return emptied;
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0) return failure(errno);
  return {};
}

Result<> remove_tree(const std::string& path) {
  const RemoveResult removed = remove_at(AT_FDCWD, path);
  if (removed) return {};
  const auto& [error_number, name] = removed.error();
  if (name == path && (error_number == ENOENT || error_number == ENOTDIR)) return {};
  return io_failure("remove", name == path ? path : path + ": " + name, error_number);
}

Result<> empty_folder(Fd folder, const std::string& shown, const std::string& spared) {
  const auto unlimited = std::numeric_limits<std::uint64_t>::max();
  const RemoveResult emptied = Removal{std::move(folder), spared, unlimited}.run();
  if (emptied) return {};
  return io_failure("remove", shown + ": " + emptied.error().name, emptied.error().error_number);
}

}  // namespace berth
