#include "base/disk_room.hpp"

#include "base/files.hpp"

#include <sys/statvfs.h>

#include <cerrno>

namespace berth {

Result<DiskRoom> room_on_disk(const std::string& folder) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return io_failure("look at", folder, errno);
  return DiskRoom{.free_bytes = disk.f_bavail * disk.f_frsize,
                  .reserve_bytes = disk_reserve(disk.f_blocks * disk.f_frsize),
                  .takes_files = disk.f_files == 0 || disk.f_favail > 0};
}

}  // namespace berth
