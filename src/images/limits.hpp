#pragma once

#include "files/limits.hpp"

namespace berth::images {

using files::Limits;

// What one image or template may cost, whatever its origin. Layers with large files of zeros and
// trees with many folders are common.
inline Limits image_limits() {
  Limits limits;
  limits.folder_names_bytes_max = std::size_t{256} << 20;
  limits.growth_free_bytes = std::uint64_t{256} << 20;
  return limits;
}

}  // namespace berth::images
