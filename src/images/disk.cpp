#include "images/disk.hpp"

#include "base/files.hpp"
#include "base/text.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace berth::images {
std::string_view prefix_of(OverlayMarks marks) {
  switch (marks) {
    case OverlayMarks::trusted: return "trusted.overlay.";
    case OverlayMarks::user: return "user.overlay.";
    case OverlayMarks::none: break;
  }
  return {};
}

bool is_mark(OverlayMarks marks, std::string_view attribute) {
  const std::string_view prefix = prefix_of(marks);
  if (prefix.empty() || !attribute.starts_with(prefix)) return false;
  return !attribute.substr(prefix.size()).starts_with("overlay.");
}

std::unexpected<Error> disk_failure(std::string_view action, std::string_view object,
                                    int error_number) {
  auto failure = io_failure(action, in_quotes(object), error_number);
  // EFBIG means that a file size limit, set by our parent process, is reached.
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG) {
    failure.error().code = Errc::store_full;
    failure.error().remedy = "make room on the disk, for example with: berth image gc";
  }
  return failure;
}

int open_beneath(int root, const std::string& path, int flags, Links links) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  how.resolve |= links == Links::as_inside ? RESOLVE_IN_ROOT : RESOLVE_BENEATH;
  if (links == Links::none) how.resolve |= RESOLVE_NO_SYMLINKS;
  const char* at = path.empty() ? "." : path.c_str();
  return static_cast<int>(::syscall(SYS_openat2, root, at, &how, sizeof how));
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
  const std::string itself = "/proc/self/fd/" + std::to_string(named.get());
  if (::chmod(itself.c_str(), out.mode_ | S_IRUSR | S_IXUSR) != 0) return out;
  out.named_ = std::move(named);
  out.opened_ = Fd{::open(itself.c_str(), flags | O_CLOEXEC)};
  return out;
}

Unlocked::~Unlocked() {
  if (!named_) return;
  ::chmod(("/proc/self/fd/" + std::to_string(named_.get())).c_str(), mode_);
}

Result<std::vector<std::string>> names_of(int folder, std::string_view object) {
  // A separate descriptor, because duplicates share the read position.
  Fd own{::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!own) return disk_failure("open", object, errno);
  const Directory directory{::fdopendir(own.get())};
  if (!directory) return disk_failure("open", object, errno);
  static_cast<void>(own.release());
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

Result<> write_at(int fd, std::string_view bytes, std::uint64_t offset, std::string_view object) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return disk_failure("write", object, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    offset += static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Result<std::string> read_link(int folder, const std::string& name, std::size_t bytes_max) {
  std::string target(bytes_max + 1, '\0');
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  if (size < 0) return disk_failure("read", name, errno);
  if (static_cast<std::size_t>(size) > bytes_max) {
    return fail(Errc::image_invalid, "link " + in_quotes(name) + ": says more than " +
                                         std::to_string(bytes_max) + " bytes");
  }
  target.resize(static_cast<std::size_t>(size));
  return target;
}

std::string path_at(int folder, std::string_view name) {
  return "/proc/self/fd/" + std::to_string(folder) + "/" + std::string{name};
}

}  // namespace berth::images
