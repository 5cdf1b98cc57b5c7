#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>

namespace berth {

// What Berth leaves free of a disk: 64 MiB, or an eighth of a small one.
constexpr std::uint64_t disk_reserve(std::uint64_t disk_bytes) {
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  return disk_bytes / 8 < most ? disk_bytes / 8 : most;
}

struct DiskRoom {
  std::uint64_t free_bytes = 0;
  std::uint64_t reserve_bytes = 0;  // below it the output of commands is lost
  bool takes_files = true;          // there are inodes left, or nobody counts them

  bool keeps_output() const { return takes_files && free_bytes >= reserve_bytes; }
};
// Of the file system that a folder is on.
Result<DiskRoom> room_on_disk(const std::string& folder);

}  // namespace berth
