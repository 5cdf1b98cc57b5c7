#include "store/sql/sqlite_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

namespace berth::store {
namespace {

constexpr mode_t private_mode = 0600;

std::unexpected<Error> open_failure(const std::string& path, int error_number) {
  const std::string reason = io_failure("open", path, error_number).error().message;
  switch (error_number) {
    case EROFS:
    case EACCES:
    case EPERM:
      return fail(Errc::store_read_only, reason,
                  "give the user of berth write access to the file and its folder, or choose "
                  "another folder with --home");
    case ENOSPC:
    case EDQUOT: return fail(Errc::store_full, reason, "free space on the file system");
    case EISDIR:
      return fail(Errc::store_corrupt, path + ": is a directory, not a database file",
                  "name a file in it");
    default: return fail(Errc::store_unreachable, reason, "check the path of the database");
  }
}

Result<> check_folder(const std::string& path) {
  const std::string folder = parent_of(path);
  struct stat found{};
  if (::stat(folder.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return {};
    return fail(Errc::store_unreachable,
                folder + ": is not a directory, so " + path + " cannot exist",
                "choose another path for the database");
  }
  if (errno != ENOENT) return open_failure(path, errno);
  return fail(Errc::store_unreachable, folder + ": the folder of the database does not exist",
              "make it with 'mkdir -p " + folder + "', or choose another path");
}

std::string holder_of(int lock) {
  std::array<char, 16> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size(), 0);
  int pid = 0;
  const char* end = text.data() + std::max<ssize_t>(got, 0);
  const auto [stop, error] = std::from_chars(text.data(), end, pid);
  return error == std::errc{} && stop != text.data() ? "process " + std::to_string(pid)
                                                     : "another process";
}

Result<Fd> lock_beside(const std::string& path) {
  const std::string name = path + ".lock";
  Fd lock{::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, private_mode)};
  if (!lock) return open_failure(name, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return io_failure("lock", name, errno);
    return fail(Errc::store_locked, path + ": is in use by " + holder_of(lock.get()),
                "stop that server, or give this one another --home");
  }
  // The pid is only for the message above, so a disk too full for it is not a reason to stop.
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t wrote = ::pwrite(lock.get(), pid.data(), pid.size(), 0);
  }
  return lock;
}

}  // namespace

Result<SqliteFile> SqliteFile::take(const std::string& path) {
  BERTH_DO(check_folder(path));
  BERTH_TRY(Fd lock, lock_beside(path));
  // SQLite itself would create the file readable for everyone. It gives its -wal and -shm files the
  // mode of this one.
  const Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, private_mode)};
  if (!file) return open_failure(path, errno);
  struct stat found{};
  if (::fstat(file.get(), &found) != 0) return io_failure("stat", path, errno);
  if (!S_ISREG(found.st_mode)) {
    return fail(Errc::store_corrupt, path + ": is not a regular file", "name another file");
  }
  return SqliteFile{std::move(lock), path};
}

}  // namespace berth::store
