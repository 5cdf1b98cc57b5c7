#include "vault/key_file.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace berth::vault {
namespace {

constexpr mode_t private_mode = 0600;
constexpr mode_t others_mode = 0077;
constexpr std::size_t file_bytes_max = 16384;

std::string called(const std::string& path) {
  return "master key file " + path;
}

std::string octal(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777));
  return text.data();
}

Result<> check_privacy(int fd, const std::string& path) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return io_failure("stat", path, errno);
  if (!S_ISREG(found.st_mode)) {
    return fail(Errc::master_key_invalid, called(path) + ": is not a regular file",
                "name the key file itself with BERTH_MASTER_KEY_FILE");
  }
  const uid_t self = ::geteuid();
  // Root could read it, but so could its owner.
  if (found.st_uid != self) {
    return fail(Errc::master_key_exposed,
                called(path) + ": belongs to user " + std::to_string(found.st_uid) +
                    ", not to user " + std::to_string(self) + " who runs Berth",
                "chown " + std::to_string(self) + " " + path);
  }
  if ((found.st_mode & others_mode) != 0) {
    return fail(
        Errc::master_key_exposed,
        called(path) + ": has mode " + octal(found.st_mode) + ", so that others may read it",
        "chmod 600 " + path + " and, if it may have been read, run 'berth secret rekey'");
  }
  return {};
}

// Like read_fd, but leaves no copy of the content in memory.
Result<Secret> read_private(int fd, const std::string& path) {
  std::array<char, file_bytes_max + 1> bytes{};
  std::size_t length = 0;
  int error_number = 0;
  while (length < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + length, bytes.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error_number = errno;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  Secret text{std::string_view{bytes.data(), length}};
  ::explicit_bzero(bytes.data(), bytes.size());
  if (error_number != 0) return io_failure("read", path, error_number);
  if (length > file_bytes_max) {
    return fail(Errc::master_key_invalid,
                called(path) + ": is larger than " + std::to_string(file_bytes_max) + " bytes",
                "restore the file from its backup");
  }
  return text;
}

// The path that rename must replace: the target of a symbolic link, or the path itself.
std::string target_of(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return ::realpath(path.c_str(), real.data()) != nullptr ? real.data() : path;
}

}  // namespace

Result<KeyRing> read_key_file(const std::string& path) {
  // O_NONBLOCK: a FIFO in place of the file must not block startup.
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file && errno == ENOENT) {
    return fail(Errc::master_key_missing, called(path) + ": does not exist",
                "restore it from the backup, or give the key in BERTH_MASTER_KEY; without it the "
                "stored secrets cannot be opened");
  }
  if (!file) return io_failure("open", called(path), errno);
  BERTH_DO(check_privacy(file.get(), path));
  BERTH_TRY(const Secret text, read_private(file.get(), path));
  return parse_ring(text.reveal(), path);
}

Result<KeyRing> create_key_file(const std::string& path, Random& random) {
  BERTH_DO(make_directories(parent_of(path), 0700));
  const KeyRing ring{make_key(random)};
  const Result<> made = create_file(path, ring_text(ring).reveal(), private_mode);
  if (!made && made.error().code != Errc::conflict) return std::unexpected(made.error());
  return read_key_file(path);
}

Result<Fd> lock_key_file(const std::string& path) {
  const std::string name = target_of(path) + ".lock";
  Fd lock{::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, private_mode)};
  if (!lock) return io_failure("open", name, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return io_failure("lock", name, errno);
  return fail(Errc::conflict, called(path) + ": another process is changing it",
              "try again when the other rotation has ended");
}

Result<> replace_key_file(const std::string& path, const KeyRing& ring) {
  return replace_file(target_of(path), ring_text(ring).reveal(), private_mode);
}

}  // namespace berth::vault
