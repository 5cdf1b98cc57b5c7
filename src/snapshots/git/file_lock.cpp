#include "snapshots/git/file_lock.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace berth::snapshots {

Result<FileLock> FileLock::take(const std::string& path, Kind kind) {
  Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file) return io_failure("open", path, errno);
  const int how = (kind == Kind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  while (::flock(file.get(), how) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      return fail(Errc::workspace_busy, path + ": another operation holds the workspace",
                  "try again when it has ended");
    }
    return io_failure("lock", path, errno);
  }
  return FileLock{std::move(file)};
}

}  // namespace berth::snapshots
