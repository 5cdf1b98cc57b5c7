#pragma once

#include "base/time.hpp"
#include "snapshots/apply_journal.hpp"
#include "snapshots/changes.hpp"
#include "snapshots/git/repository.hpp"
#include "snapshots/merge.hpp"
#include "snapshots/snapshot.hpp"

#include <string>
#include <vector>

namespace berth::snapshots {

enum class OnConflict {
  refuse,   // nothing is written
  markers,  // text gets conflict markers, and a binary file the other version beside it
  ours,     // the target's version of each path with a conflict
  theirs,   // the result's
};

struct ApplyOptions {
  OnConflict on_conflict = OnConflict::refuse;
  ScanOptions scan = {};   // of the target; the same rules as for the base
  std::string cache = {};  // as in SnapshotOptions
};

struct ApplyReport {
  std::vector<Conflict> conflicts = {};
  std::vector<Change> changes = {};      // of the target
  std::vector<std::string> nested = {};  // changes of nested repositories, which are not applied
  std::vector<std::string> unfinished = {};  // of an earlier apply: changed before it could go on
  ObjectId merged = {};                      // the tree that the target has afterwards
  bool written = false;
};

// Brings the changes from base to result into a folder, by a three-way merge with the folder as it
// is now.
//
// A process that is killed leaves a journal once it has begun to write, and the next call completes
// what it began before it merges again. Between the two, each path has its whole old or its whole
// new content. If a path changes while it is applied, everything is put back: merge_conflict names
// it.
//
// Fails with merge_conflict (facts: `conflicts`), workspace_busy while another apply runs,
// path_refused for a result with names that no tree may hold, and as take_snapshot.
class Apply {
 public:
  Apply(const Repository& repository, std::string target);

  // Says what `apply` would do, and writes nothing into the target.
  Result<ApplyReport> check(const ObjectId& base, const ObjectId& result,
                            const ApplyOptions& options = {}) const;
  Result<ApplyReport> apply(const ObjectId& base, const ObjectId& result,
                            const ApplyOptions& options = {}) const;
  // Completes what a killed process began. Returns the paths that had changed meanwhile.
  Result<std::vector<std::string>> recover() const;

 private:
  struct Plan;
  Result<Plan> plan(const ObjectId& base, const ObjectId& result,
                    const ApplyOptions& options) const;
  Result<> write(const Plan& plan) const;
  Result<> place(const ApplyJournal& journal, int root, int draft) const;
  Result<std::vector<std::string>> recover_locked() const;
  Result<> remove_stale_drafts(int root) const;
  std::string draft_prefix() const { return ".berth-apply-" + key_.substr(0, 16) + "-"; }
  std::string journal_path() const;

  const Repository& repository_;
  std::string target_;
  std::string key_;  // names the target and the repository
};

}  // namespace berth::snapshots
