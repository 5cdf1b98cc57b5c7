#pragma once

#include "snapshots/changes.hpp"
#include "snapshots/git/object_reader.hpp"
#include "snapshots/git/repository.hpp"

#include <string>
#include <vector>

namespace berth::snapshots {

// Where both sides changed the same thing.
struct Conflict {
  std::vector<std::string> paths;  // exact bytes; more than one for renames
  std::string kind;                // as git names it: "contents", "binary", "modify/delete", ...
  std::string message;             // git's sentence

  friend bool operator==(const Conflict&, const Conflict&) = default;
};

struct Merge {
  ObjectId tree = {};  // with conflict markers where text conflicts
  std::vector<Conflict> conflicts = {};
  std::vector<std::string> conflicted = {};  // all paths with a conflict, sorted
  bool clean = false;
};

// Three snapshots, as commits or trees.
struct MergeSides {
  ObjectId base;
  ObjectId ours;
  ObjectId theirs;
};

// The three-way merge of git, on trees alone: it writes objects and nothing else.
Result<Merge> merge_snapshots(const Repository& repository, const MergeSides& sides);

enum class Side { ours, theirs };
// The tree of a merge in which each path with a conflict is that of one side, as a whole.
// merge_conflict if that leaves a file where a folder must be.
Result<ObjectId> resolve(const Repository& repository, const MergeSides& sides, const Merge& merge,
                         Side side);
// The tree of a merge with the other side's version of each binary file beside it, as NAME.theirs.
Result<ObjectId> with_their_binaries(const Repository& repository, const MergeSides& sides,
                                     const Merge& merge);

}  // namespace berth::snapshots
