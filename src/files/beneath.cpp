#include "files/beneath.hpp"

#include "base/files.hpp"
#include "base/remove_tree.hpp"
#include "files/path.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace berth::files {
namespace {

// Renames elsewhere in the tree may make the kernel request a retry.
constexpr int open_attempts_max = 64;

constexpr long configfs_magic = 0x62656570;
constexpr long mqueue_magic = 0x19800202;
constexpr long kernel_file_systems[] = {
    PROC_SUPER_MAGIC,     SYSFS_MAGIC,    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
    TRACEFS_MAGIC,        BPF_FS_MAGIC,   SECURITYFS_MAGIC,   DEVPTS_SUPER_MAGIC,  BINFMTFS_MAGIC,
    PSTOREFS_MAGIC,       NSFS_MAGIC,     SELINUX_MAGIC,      EFIVARFS_MAGIC,      SMACK_MAGIC,
    BINDERFS_SUPER_MAGIC, configfs_magic, mqueue_magic,
};

// The rule behind the kernel's refusal; empty if it is a failure.
std::string_view rule_of(int error_number) {
  switch (error_number) {
    case ELOOP: return "leads through a symbolic link";
    case EXDEV: return "leads out of its root or onto another mount";
    case ENAMETOOLONG: return "is too long for the file system";
    case EROFS: return "lies on a read-only file system";
    case EACCES:
    case EPERM: return "is closed to this user";
    case EBUSY: return "is a mount point, or in use as one";
    case ETXTBSY: return "is a program that runs";
    default: return {};
  }
}

int open_resolved(int folder, const std::string& path, int flags, mode_t mode,
                  std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS;
  const char* at = path.empty() ? "." : path.c_str();
  long fd = -1;
  for (int attempt = 0; attempt < open_attempts_max; ++attempt) {
    fd = ::syscall(SYS_openat2, folder, at, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return static_cast<int>(fd);
}

// A descriptor of its own, because duplicates share the read position.
Directory directory_of(int folder) {
  Fd own{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  Directory directory{own ? ::fdopendir(own.get()) : nullptr};
  if (directory) static_cast<void>(own.release());
  return directory;
}

// Null at the end, and then errno says whether it is one.
const char* next_name(const Directory& directory) {
  while (true) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is its caller's own
    const dirent* entry = ::readdir(directory.get());
    // A folder that is removed while it is read has no more names.
    if (entry == nullptr && errno == ENOENT) errno = 0;
    if (entry == nullptr) return nullptr;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
}

}  // namespace

std::unexpected<Error> disk_failure(std::string_view action, std::string_view path,
                                    int error_number) {
  if (error_number == ENOENT) {
    return fail(Errc::file_not_found, "path '" + escaped(path) + "': is not there");
  }
  if (error_number == ENOTDIR) {
    return fail(Errc::file_not_found, "path '" + escaped(path) + "': leads through a file");
  }
  if (const std::string_view rule = rule_of(error_number); !rule.empty()) return refuse(path, rule);
  return store_failure(action, path, error_number);
}

std::unexpected<Error> store_failure(std::string_view action, std::string_view object,
                                     int error_number) {
  auto failure = io_failure(action, "'" + escaped(object) + "'", error_number);
  // EFBIG means that a file size limit, set by our parent process, is reached.
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    failure.error().code = Errc::store_full;
    failure.error().remedy =
        "make room on the disk, for example with: berth image gc; or raise the disk limit of the "
        "environment";
  }
  return failure;
}

int open_beneath(int folder, const std::string& path, int flags, Mounts mounts, mode_t mode) {
  std::uint64_t resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  if (mounts == Mounts::refused) resolve |= RESOLVE_NO_XDEV;
  return open_resolved(folder, path, flags, mode, resolve);
}

int open_beneath(int root, const std::string& path, int flags, Links links) {
  std::uint64_t resolve = links == Links::as_inside ? RESOLVE_IN_ROOT : RESOLVE_BENEATH;
  if (links == Links::none) resolve |= RESOLVE_NO_SYMLINKS;
  return open_resolved(root, path, flags, 0, resolve);
}

Result<Found> find(int folder, const std::string& path, Mounts mounts, std::string_view shown) {
  Found found{.at = Fd{open_beneath(folder, path, O_PATH | O_NOFOLLOW, mounts)}};
  if (!found.at) return disk_failure("open", shown, errno);
  struct statfs system{};
  if (::fstat(found.at.get(), &found.status) != 0 || ::fstatfs(found.at.get(), &system) != 0) {
    return disk_failure("look at", shown, errno);
  }
  const auto* const end = std::end(kernel_file_systems);
  if (std::find(std::begin(kernel_file_systems), end, system.f_type) != end) {
    return refuse(shown, "lies on a file system of the kernel's own");
  }
  return found;
}

Result<Names> Names::of(int folder, std::string_view shown) {
  Directory directory = directory_of(folder);
  if (!directory) return disk_failure("open", shown, errno);
  return Names{std::move(directory), std::string{shown}};
}

Result<std::optional<std::string>> Names::next() {
  const char* name = next_name(directory_);
  if (name != nullptr) return std::string{name};
  if (errno != 0) return disk_failure("read", shown_, errno);
  return std::nullopt;
}

Result<std::vector<std::string>> names_of(int folder, std::string_view shown) {
  const Directory directory = directory_of(folder);
  if (!directory) return store_failure("open", shown, errno);
  std::vector<std::string> names;
  while (const char* name = next_name(directory)) names.emplace_back(name);
  if (errno != 0) return store_failure("read", shown, errno);
  std::ranges::sort(names);
  return names;
}

Unlocked Unlocked::open_as_it_is(int folder, const std::string& name, int flags) {
  Unlocked out;
  out.opened_ = Fd{::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC)};
  return out;
}

Unlocked Unlocked::open(int folder, const std::string& name, int flags) {
  Unlocked out = open_as_it_is(folder, name, flags);
  if (out.opened_ || errno != EACCES) return out;
  // Touches only this inode, whatever its name refers to by now.
  Fd named{::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
  struct stat seen{};
  const bool is_ours = named && ::fstat(named.get(), &seen) == 0 && seen.st_uid == ::geteuid() &&
                       (S_ISREG(seen.st_mode) || S_ISDIR(seen.st_mode));
  if (!is_ours) {
    errno = EACCES;
    return out;
  }
  out.mode_ = seen.st_mode & 07777;
  const std::string itself = path_of(named.get());
  if (::chmod(itself.c_str(), out.mode_ | S_IRUSR | S_IXUSR) != 0) return out;
  out.named_ = std::move(named);
  out.opened_ = Fd{::open(itself.c_str(), flags | O_CLOEXEC)};
  return out;
}

Unlocked::~Unlocked() {
  if (named_) ::chmod(path_of(named_.get()).c_str(), mode_);
}

Result<std::string> read_link(int folder, const std::string& name, std::string_view shown,
                              std::size_t bytes_max) {
  std::string target(bytes_max + 1, '\0');
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  if (size < 0) return disk_failure("read", shown, errno);
  if (static_cast<std::size_t>(size) > bytes_max) {
    return refuse(shown, "is a link that says more than " + std::to_string(bytes_max) + " bytes");
  }
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view shown) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return store_failure("write", shown, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Result<> set_look(int fd, mode_t mode, const std::optional<Owner>& owner, std::string_view shown) {
  if (owner && ::fchown(fd, owner->uid, owner->gid) != 0) {
    return disk_failure("change the owner of", shown, errno);
  }
  if (::fchmod(fd, mode & 0777) != 0) return disk_failure("change the mode of", shown, errno);
  return {};
}

std::string path_of(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

Time time_of(const timespec& at) {
  return Time{std::int64_t{at.tv_sec} * 1000 + at.tv_nsec / 1'000'000};
}

timespec timespec_of(Time at) {
  const std::chrono::milliseconds since{at.ms};
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const std::chrono::nanoseconds rest = since - whole;
  return {.tv_sec = whole.count(), .tv_nsec = rest.count()};
}

Result<> remove_beneath(int folder, const std::string& name, std::string_view shown,
                        std::uint64_t entries_max) {
  const auto removed = remove_at(folder, name, entries_max);
  if (removed) return {};
  switch (removed.error().error_number) {
    case E2BIG: return refuse(shown, "holds too much to be removed at once");
    case ENOTEMPTY:
      return fail(Errc::conflict, "path '" + escaped(shown) + "': changed while it was removed",
                  "stop what writes there and repeat");
    default: return disk_failure("remove", shown, removed.error().error_number);
  }
}

}  // namespace berth::files
