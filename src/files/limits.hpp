#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::files {

// How much of an untrusted tree is looked at, read or written in one call. Each limit is checked
// before the cost is paid.
struct Limits {
  std::uint64_t entries_max = 1'000'000;          // in one walk or archive
  std::uint64_t bytes_max = 64ULL << 30;          // of all files of a tree, including holes
  std::uint64_t file_bytes_max = 16ULL << 30;     // of one file, including holes
  std::uint64_t listed_max = 10'000;              // names in one listing
  std::uint64_t removed_max = 4'000'000;          // entries in one removal
  std::size_t depth_max = 128;                    // folders above one entry; each is a descriptor
  std::size_t path_bytes_max = 4095;              // the kernel's limit per call
  std::size_t target_bytes_max = 4095;            // of a symbolic link
  std::size_t folder_names_bytes_max = 64 << 20;  // folders of one tree, kept until its end

  // A file may be larger than its blocks on the disk by this amount, or by this factor.
  std::uint64_t holes_free_bytes = 64 << 20;
  std::uint64_t holes_ratio_max = 16;
  // An archive may always decompress to this much, and otherwise to this many times what was sent.
  std::uint64_t growth_free_bytes = 64 << 20;
  std::uint64_t growth_ratio_max = 200;
};

}  // namespace berth::files
