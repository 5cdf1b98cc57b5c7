#include "files/readable_file.hpp"

#include "files/entry.hpp"
#include "files/path.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace berth::files {
namespace {

constexpr std::size_t piece_bytes = 256 << 10;
constexpr std::uint64_t block_bytes = 512;  // the unit of st_blocks on every file system

std::string_view noun_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::unexpected<Error> changed(std::string_view shown) {
  return fail(Errc::conflict, "path '" + escaped(shown) + "': changed while it was read",
              "read it again when nothing writes to it");
}

}  // namespace

Result<> may_leave(const struct stat& status, std::string_view shown, const Limits& limits,
                   HardLinks links) {
  if (!S_ISREG(status.st_mode)) {
    return refuse(shown, "is " + std::string{noun_of(status.st_mode)} + ", no regular file");
  }
  if (status.st_nlink == 0) return disk_failure("open", shown, ENOENT);
  if (status.st_nlink != 1 && links == HardLinks::refused) {
    return refuse(shown,
                  "has " + std::to_string(status.st_nlink) +
                      " names (hard links), of which some may lie outside",
                  "copy it to a new file and take that");
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t held = static_cast<std::uint64_t>(status.st_blocks) * block_bytes;
  if (size > held + limits.holes_free_bytes && size / limits.holes_ratio_max > held) {
    return refuse(shown, "is sparse: " + std::to_string(size) + " bytes, of which " +
                             std::to_string(held) + " are on the disk");
  }
  if (size > limits.file_bytes_max) {
    return refuse(shown, "has more than " + std::to_string(limits.file_bytes_max) + " bytes");
  }
  return {};
}

Result<ReadableFile> ReadableFile::open(const Found& found, std::string_view shown,
                                        const Limits& limits, HardLinks links) {
  BERTH_DO(may_leave(found.status, shown, limits, links));
  // Reopens the descriptor, not the name, so it is exactly the file that was checked. Without
  // O_NONBLOCK a file lease held by a program inside would make us wait.
  Fd file{::open(path_of(found.at.get()).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!file) return disk_failure("open", shown, errno);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  return ReadableFile{std::move(file), found.status, std::string{shown}};
}

Result<> ReadableFile::copy_to(const ByteSink& sink) const {
  std::vector<char> piece(std::min<std::uint64_t>(piece_bytes, bytes()));
  std::uint64_t offset = 0;
  // Never a byte more than announced, even if the sink could take it.
  while (offset < bytes()) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), bytes() - offset);
    const ssize_t got = ::pread(file_.get(), piece.data(), count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return disk_failure("read", shown_, errno);
    if (got == 0) return changed(shown_);
    offset += static_cast<std::uint64_t>(got);
    BERTH_DO(sink({piece.data(), static_cast<std::size_t>(got)}));
  }
  return check_unchanged();
}

Result<std::string> ReadableFile::read_part(std::uint64_t offset, std::size_t count) const {
  std::string part(count, '\0');
  std::size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::pread(file_.get(), part.data() + filled, count - filled,
                                static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return disk_failure("read", shown_, errno);
    if (got == 0) return changed(shown_);
    filled += static_cast<std::size_t>(got);
  }
  BERTH_DO(check_unchanged());
  return part;
}

// A file that grew counts as appended to, like a log: what was read of it is still valid. Times
// have the resolution of the kernel's tick, so two changes of the same size within one tick may go
// unnoticed.
Result<> ReadableFile::check_unchanged() const {
  struct stat now{};
  if (::fstat(file_.get(), &now) != 0) return disk_failure("look at", shown_, errno);
  if (now.st_size > status_.st_size) return {};
  if (now.st_size != status_.st_size || !same_moment(now.st_mtim, status_.st_mtim) ||
      !same_moment(now.st_ctim, status_.st_ctim)) {
    return changed(shown_);
  }
  return {};
}

}  // namespace berth::files
