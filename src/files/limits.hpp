#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::workspaces {

// How much of an untrusted tree is looked at, read or written in one call.
struct Limits {
  std::uint64_t entries_max = 1'000'000;          // in one walk or archive
  std::uint64_t bytes_max = 64ULL << 30;          // of one archive, unpacked
  std::uint64_t file_bytes_max = 16ULL << 30;     // of one file
  std::uint64_t listed_max = 10'000;              // names in one listing
  std::uint64_t removed_max = 4'000'000;          // entries in one removal
  std::size_t depth_max = 128;                    // folders above one entry; each is a descriptor
  std::size_t path_bytes_max = 4095;              // the kernel's limit per call
  std::size_t folder_names_bytes_max = 64 << 20;  // folders of one archive, kept until its end

  // A file may be larger than its blocks on the disk by this amount, or by this factor.
  std::uint64_t holes_free_bytes = 64 << 20;
  std::uint64_t holes_ratio_max = 16;
  // An archive may decompress to this much more than was sent, or to this many times that.
  std::uint64_t growth_free_bytes = 64 << 20;
  std::uint64_t growth_ratio_max = 200;
};

}  // namespace berth::workspaces
