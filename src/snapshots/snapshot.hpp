#pragma once

#include "base/time.hpp"
#include "snapshots/folder/scan.hpp"
#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <optional>
#include <string>
#include <vector>

namespace berth::snapshots {

struct SnapshotOptions {
  ScanOptions scan = {};
  std::optional<ObjectId> parent = {};  // the commit that the snapshot's commit follows
  // A name for the folder, under which its file times are remembered: an unchanged file is then not
  // read again. Empty: every file is read.
  std::string cache = {};
  std::string message = "snapshot";
  Time now = {};
};

// One exact tree: paths, modes, links, contents.
struct Snapshot {
  ObjectId commit = {};
  ObjectId tree = {};
  std::uint64_t files = 0;  // with links
  std::uint64_t bytes = 0;
  std::uint64_t files_read = 0;  // the others were known from their times
  std::uint64_t bytes_read = 0;
  std::vector<Notice> notices = {};  // what was left out or changed on the way in, and why
  std::uint64_t left_out = 0;        // also those for which there was no room in the notices

  // One entry of the folder as it was read. Kept for `apply`, which replaces only what it knows.
  std::vector<ScannedEntry> entries = {};
};

// Records the folder as a commit of the repository. Other processes may change the folder
// meanwhile: nothing outside it is read, and a file that changes while it is read is read again.
// The objects are durable when this returns; the caller holds `repository.hold_objects()` until a
// ref names the commit.
//
// Fails with workspace_invalid (not a folder), workspace_too_large (names the largest entries),
// workspace_unsteady (names the file that kept changing).
Result<Snapshot> take_snapshot(const Repository& repository, const std::string& folder,
                               const SnapshotOptions& options);

}  // namespace berth::snapshots
