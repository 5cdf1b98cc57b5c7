#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::workspaces {

// How much of a tree that somebody else fills is ever looked at, read or written in one go.
struct Limits {
  std::uint64_t entries_max = 1'000'000;          // of one walk or one archive
  std::uint64_t bytes_max = 64ULL << 30;          // of one archive, unpacked
  std::uint64_t file_bytes_max = 16ULL << 30;     // of one file
  std::uint64_t listed_max = 10'000;              // names in one listing
  std::uint64_t removed_max = 4'000'000;          // things in one removal
  std::size_t depth_max = 128;                    // folders above one thing; each is a descriptor
  std::size_t path_bytes_max = 4095;              // what the kernel takes in one call
  std::size_t folder_names_bytes_max = 64 << 20;  // folders of one archive, remembered to its end

  // A file may be this much larger than the blocks that it has on the disk, or this many times.
  std::uint64_t holes_free_bytes = 64 << 20;
  std::uint64_t holes_ratio_max = 16;
  // An archive may decompress to this much more than was sent, or to this many times that.
  std::uint64_t growth_free_bytes = 64 << 20;
  std::uint64_t growth_ratio_max = 200;
};

}  // namespace berth::workspaces
