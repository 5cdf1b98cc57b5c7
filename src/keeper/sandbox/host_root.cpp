#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/skeleton.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string>

// The root that is built on the host's own programs: /usr read-only as it is, and a skeleton of the
// rest that contains only what programs need from this host.
namespace berth::keeper::sandbox {
namespace {

constexpr std::uint64_t host_root_attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

int write_file(int directory, const SkeletonFile& file) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const Fd made{::openat(directory, file.path, flags, skeleton_file_mode)};
  if (!made) return errno;
  return ::write(made.get(), file.text.data(), file.text.size()) < 0 ? errno : 0;
}

}  // namespace

// Mounted as on the host, without an id map. The owners have no id inside, so every process there,
// even root, has only the permissions for others. A map would make root inside the owner of
// protected files.
int RootBuilder::open_host() {
  if (const int error_number = open_name_servers(); error_number != 0) return error_number;
  if (plan_.base != Base::host) return 0;
  if (const int error_number = add_host("/usr", host_root_attributes); error_number != 0) {
    return error_number;
  }
  for (const char* path : usr_links) {
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlink(path, target.data(), target.size());
    if (size > 0) {
      host_.push_back(
          {.target = path, .tree = {}, .link = {target.data(), static_cast<std::size_t>(size)}});
    } else if (const int error_number = add_host(path, host_root_attributes); error_number != 0) {
      return error_number;
    }
  }
  for (const char* path : etc_parts) {
    if (const int error_number = add_host(path, host_root_attributes | MOUNT_ATTR_NOEXEC);
        error_number != 0) {
      return error_number;
    }
  }
  return 0;
}

int make_skeleton(int directory) {
  const mode_t before = ::umask(0);
  for (const SkeletonFolder& folder : skeleton_folders) {
    // A parent of a kept folder exists already.
    if (::mkdirat(directory, folder.path, folder.mode) != 0 && errno != EEXIST) return errno;
  }
  ::umask(before);
  for (const SkeletonFile& file : skeleton_files) {
    if (const int error_number = write_file(directory, file); error_number != 0) {
      return error_number;
    }
  }
  return 0;
}

int make_hosts_file(int directory) {
  if (::mkdirat(directory, "etc", 0755) != 0) return errno;
  return write_file(directory, hosts_file);
}

int name_ids(std::uint32_t first_id) {
  const std::string root = std::to_string(first_id);
  const std::string user = std::to_string(first_id + User{}.uid);
  const std::string users = "root:x:" + root + ":" + root +
                            ":root:/root:/bin/sh\nsandbox:x:" + user + ":" + user +
                            ":sandbox:/home/sandbox:/bin/sh\n";
  const std::string groups = "root:x:" + root + ":\nsandbox:x:" + user + ":\n";
  for (const SkeletonFile& file : {SkeletonFile{.path = "/etc/passwd", .text = users},
                                   SkeletonFile{.path = "/etc/group", .text = groups}}) {
    if (::unlink(file.path) != 0) return errno;
    if (const int error_number = write_file(AT_FDCWD, file); error_number != 0) {
      return error_number;
    }
  }
  return 0;
}

int RootBuilder::add_host_parts(int directory) const {
  for (const HostPart& part : host_) {
    const char* relative = part.target.c_str() + 1;
    if (!part.link.empty()) {
      if (::symlinkat(part.link.c_str(), directory, relative) != 0) return errno;
      continue;
    }
    struct stat source{};
    if (::fstat(part.tree.get(), &source) != 0) return errno;
    const bool is_directory = S_ISDIR(source.st_mode);
    if (is_directory && ::mkdirat(directory, relative, 0755) != 0 && errno != EEXIST) return errno;
    if (!is_directory) {
      if (const int error_number = write_file(directory, {.path = relative, .text = {}});
          error_number != 0) {
        return error_number;
      }
    }
  }
  return make_name_servers_place(directory);
}

int RootBuilder::make_name_servers_place(int directory) const {
  if (!name_servers_) return 0;
  return write_file(directory, {.path = name_servers_file + 1, .text = {}});
}

}  // namespace berth::keeper::sandbox
