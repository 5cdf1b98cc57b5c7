#include "plugins/folder_use.hpp"

#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

namespace berth::plugins {
namespace {

constexpr std::int64_t block_bytes = 512;

bool is_over(const FolderUse& use, const FolderUse& most) {
  return (most.bytes > 0 && use.bytes > most.bytes) || (most.files > 0 && use.files > most.files);
}

struct Close {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

Result<FolderUse> measure_folder(const std::string& path, const FolderUse& most) {
  FolderUse use;
  std::vector<std::string> left{path};
  while (!left.empty()) {
    const std::string folder = std::move(left.back());
    left.pop_back();
    const int opened =
        ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NOATIME);
    const int fd = opened >= 0 || errno != EPERM
                       ? opened
                       : ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    // Removed or replaced meanwhile: the next measurement counts its replacement.
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) continue;
    if (fd < 0) return io_failure("read", folder, errno);
    const std::unique_ptr<DIR, Close> entries{::fdopendir(fd)};
    if (!entries) return io_failure("read", folder, errno);
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is this function's own
    while (const dirent* entry = ::readdir(entries.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct stat seen{};
      if (::fstatat(::dirfd(entries.get()), name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
        continue;
      }
      ++use.files;
      use.bytes += seen.st_blocks * block_bytes;
      if (is_over(use, most)) return use;
      if (S_ISDIR(seen.st_mode)) left.push_back(folder + "/" + name);
    }
  }
  return use;
}

std::optional<std::string> why_too_much(const Result<FolderUse>& use, const FolderUse& most) {
  if (!use) return "its own folder cannot be measured: " + use.error().message;
  if (most.bytes > 0 && use->bytes > most.bytes) {
    return "its own folder holds more than " + std::to_string(most.bytes >> 20) + " MB";
  }
  if (most.files > 0 && use->files > most.files) {
    return "its own folder holds more than " + std::to_string(most.files) + " files";
  }
  return std::nullopt;
}

}  // namespace berth::plugins
