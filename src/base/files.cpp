#include "base/files.hpp"

#include "base/random.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace berth {
namespace {

std::string describe(int error_number) {
  std::array<char, 128> text{};
  return ::strerror_r(error_number, text.data(), text.size());
}

Result<> write_and_sync(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_failure("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fsync(fd) != 0) return io_failure("fsync", path, errno);
  return {};
}

// A new name is durable only when its directory is.
Result<> sync_directory(const std::string& path) {
  const Fd directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!directory) return io_failure("open", path, errno);
  if (::fsync(directory.get()) != 0) return io_failure("fsync", path, errno);
  return {};
}

// Writes the whole text under a unique name, which the caller links or renames into place, so that
// no reader sees a partial file. Two writers of one path, in one process or in two, never share a
// draft.
Result<std::string> write_draft(const std::string& path, std::string_view text, mode_t mode) {
  SystemRandom random;
  std::string draft = path + ".new." + random_base64url(random, 12);
  const Fd file{::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)};
  if (!file) return io_failure("create", path, errno);
  if (Result<> done = write_and_sync(file.get(), text, path); !done) {
    ::unlink(draft.c_str());
    return std::unexpected(std::move(done).error());
  }
  return draft;
}

}  // namespace

std::unexpected<Error> io_failure(std::string_view action, std::string_view object,
                                  int error_number) {
  std::string message =
      std::string{action} + " " + std::string{object} + ": " + describe(error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) {
    return fail(Errc::disk_full, std::move(message),
                "make room on that disk; it may lack bytes (df) or files (df -i)");
  }
  return fail(Errc::io_failed, std::move(message));
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> read_fd(int fd, std::size_t bytes_max, std::string_view name) {
  std::string text;
  std::array<char, 65536> chunk;  // not cleared: most files are small, and touching its pages is
                                  // costly
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", name, errno);
    if (got == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(got));
    if (text.size() > bytes_max) {
      return fail(Errc::io_failed,
                  std::string{name} + ": is larger than " + std::to_string(bytes_max) + " bytes");
    }
  }
}

Result<std::string> read_file(const std::string& path, std::size_t bytes_max) {
  const Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return io_failure("open", path, errno);
  return read_fd(file.get(), bytes_max, path);
}

Result<> create_file(const std::string& path, std::string_view text, mode_t mode) {
  BERTH_TRY(const std::string draft, write_draft(path, text, mode));
  Result<> done;
  if (::link(draft.c_str(), path.c_str()) != 0) {
    done = errno == EEXIST ? Result<>{fail(Errc::conflict, path + ": exists already")}
                           : Result<>{io_failure("create", path, errno)};
  }
  ::unlink(draft.c_str());
  BERTH_DO(std::move(done));
  return sync_directory(parent_of(path));
}

Result<> replace_file(const std::string& path, std::string_view text, mode_t mode) {
  BERTH_TRY(const std::string draft, write_draft(path, text, mode));
  if (std::rename(draft.c_str(), path.c_str()) != 0) {
    const auto failure = io_failure("replace", path, errno);
    ::unlink(draft.c_str());
    return failure;
  }
  return sync_directory(parent_of(path));
}

Result<> make_directories(const std::string& path, mode_t mode) {
  // Usually the parent folders exist.
  if (::mkdir(path.c_str(), mode) == 0) return {};
  const bool lacks_parents = errno == ENOENT;
  if (!lacks_parents && errno != EEXIST) return io_failure("mkdir", path, errno);
  for (std::size_t at = path.find('/', 1); lacks_parents; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return io_failure("mkdir", part, errno);
    }
    if (at == std::string::npos) break;
  }
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return io_failure("stat", path, errno);
  if (!S_ISDIR(found.st_mode)) return fail(Errc::io_failed, path + ": is not a directory");
  return {};
}

Result<std::vector<std::string>> names_in(const std::string& path) {
  const Directory directory{::opendir(path.c_str())};
  if (!directory) return io_failure("open", path, errno);
  std::vector<std::string> names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace berth
