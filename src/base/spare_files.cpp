#include "base/spare_files.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace berth {
namespace {

constexpr std::size_t spare_max = 8;
constexpr mode_t for_us_alone = 0600;

}  // namespace

Fd SpareFiles::take() {
  const std::lock_guard lock{mutex_};
  if (spare_.empty()) return {};
  Fd file = std::move(spare_.back());
  spare_.pop_back();
  return file;
}

Result<Fd> SpareFiles::open(const std::string& path) {
  if (Fd file = take()) {
    const std::string unnamed = "/proc/self/fd/" + std::to_string(file.get());
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      return file;
    }
  }
  // It already exists, or this file system does not support unnamed files.
  Fd file{::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, for_us_alone)};
  if (!file) return io_failure("open", path, errno);
  return file;
}

void SpareFiles::restock() {
  while (true) {
    {
      const std::lock_guard lock{mutex_};
      if (spare_.size() >= spare_max) return;
    }
    Fd file{::open(folder_.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, for_us_alone)};
    if (!file) return;
    const std::lock_guard lock{mutex_};
    spare_.push_back(std::move(file));
  }
}

}  // namespace berth
