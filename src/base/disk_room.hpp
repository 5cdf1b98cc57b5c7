#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace berth {

// The disk space that Berth leaves free: 64 MiB, or an eighth of a small disk.
constexpr std::uint64_t disk_reserve(std::uint64_t disk_bytes) {
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  return disk_bytes / 8 < most ? disk_bytes / 8 : most;
}

struct DiskRoom {
  std::uint64_t free_bytes = 0;
  std::uint64_t reserve_bytes = 0;  // below it, command output is lost
  bool takes_files = true;          // there are inodes left, or the file system does not count them

  bool keeps_output() const { return takes_files && free_bytes >= reserve_bytes; }
};
// For the file system that contains the folder.
Result<DiskRoom> room_on_disk(const std::string& folder);

}  // namespace berth
