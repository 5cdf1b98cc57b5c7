#include "workspaces/disk.hpp"

#include "base/files.hpp"
#include "base/random.hpp"
#include "workspaces/path.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

namespace berth::workspaces {
namespace {

constexpr std::string_view draft_prefix = ".berth-draft-";
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
  auto failure = io_failure(action, "'" + escaped(path) + "'", error_number);
  // EFBIG means that a file size limit, set by our parent process, is reached.
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    failure.error().code = Errc::store_full;
    failure.error().remedy = "make room, or raise the disk limit of the environment";
  }
  return failure;
}

int open_beneath(int folder, const std::string& path, int flags, Mounts mounts, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  if (mounts == Mounts::refused) how.resolve |= RESOLVE_NO_XDEV;
  long fd = -1;
  for (int attempt = 0; attempt < open_attempts_max; ++attempt) {
    fd = ::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
  }
  return static_cast<int>(fd);
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
  Fd own{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!own) return disk_failure("open", shown, errno);
  Directory directory{::fdopendir(own.get())};
  if (!directory) return disk_failure("open", shown, errno);
  static_cast<void>(own.release());
  return Names{std::move(directory), std::string{shown}};
}

Result<std::optional<std::string>> Names::next() {
  while (true) {
    errno = 0;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this object's own
    const dirent* entry = ::readdir(directory_.get());
    // A folder that is removed while it is read has no more names.
    if (entry == nullptr && (errno == 0 || errno == ENOENT)) return std::nullopt;
    if (entry == nullptr) return disk_failure("read", shown_, errno);
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return std::string{name};
  }
}

Result<std::string> read_link(int folder, const std::string& name, std::string_view shown) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  if (size < 0) return disk_failure("read", shown, errno);
  target.resize(static_cast<std::size_t>(size));
  return target;
}

Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view shown) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return disk_failure("write", shown, errno);
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

std::string draft_name() {
  SystemRandom random;
  return std::string{draft_prefix} + random_base64url(random, 12);
}

bool is_draft_name(std::string_view name) {
  return name.starts_with(draft_prefix);
}

}  // namespace berth::workspaces
