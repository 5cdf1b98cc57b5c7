#pragma once

#include "snapshots/beneath.hpp"
#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace berth::snapshots {

struct BundleLimits {
  std::uint64_t bytes_max = 4ULL << 30;  // of the bundle
  std::uint64_t objects_max = 1'000'000;
  std::uint64_t inflated_bytes_max = 64ULL << 30;  // of all objects
  std::uint64_t object_bytes_max = 4ULL << 30;     // of one object
  std::uint64_t memory_bytes_max = 4ULL << 30;     // that git may use to read it
  std::chrono::milliseconds time_max{600'000};
};

struct BundleCommits {
  ObjectId tip = {};
  std::uint64_t commits = 0;  // that this repository did not have
  std::uint64_t objects = 0;
};

// Takes the commits of a run out of a bundle that comes from a place. Its objects are checked in a
// folder of their own, where nothing of the repository sees them, and only then become
// refs/berth/runs/<run>/commits. The repository of the place itself is never opened.
//
// The bundle must bring exactly one ref, `ref`. Fails with bundle_invalid (a bundle that lies, that
// is damaged, or whose objects git refuses) and bundle_too_large; then the repository is as before.
// Not at the same time for one run.
Result<BundleCommits> accept_bundle(const Repository& repository, std::string_view run,
                                    std::string_view ref, const ByteSource& bundle,
                                    const BundleLimits& limits = {});

}  // namespace berth::snapshots
