#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::images {

// What one image may cost, whatever its archive's origin. Each limit is checked before the cost is
// paid.
struct Limits {
  std::uint64_t bytes_max = std::uint64_t{64} << 30;       // of all files, including holes
  std::uint64_t file_bytes_max = std::uint64_t{16} << 30;  // of one file, including holes
  std::uint64_t entries_max = 1'000'000;
  std::size_t path_bytes_max = 4095;
  std::size_t name_bytes_max = 255;
  std::size_t target_bytes_max = 4095;  // of a symbolic link
  std::size_t depth_max = 128;          // folders above an entry
  // A compressed stream may grow by this factor; small ones may always grow.
  std::uint64_t growth_max = 200;
  std::uint64_t growth_free_bytes = std::uint64_t{256} << 20;
};

// The ids that an archive may give its files: the range that every sandbox has.
inline constexpr std::uint32_t id_max = 65535;

}  // namespace berth::images
