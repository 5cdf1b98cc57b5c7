#pragma once

#include "base/result.hpp"
#include "snapshots/git/object_id.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::snapshots {

// What a git bundle says of itself, before its pack.
struct BundleHeader {
  std::vector<ObjectId> needs = {};                         // commits that the receiver must have
  std::vector<std::pair<std::string, ObjectId>> refs = {};  // what the pack brings
  std::size_t bytes = 0;                                    // of the header itself

  static constexpr std::size_t bytes_max = 64 << 10;
  // From the beginning of a bundle. bundle_invalid if that is not a header, or not a whole one.
  static Result<BundleHeader> parse(std::string_view text);
};

}  // namespace berth::snapshots
