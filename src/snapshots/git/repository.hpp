#pragma once

#include "snapshots/git/file_lock.hpp"
#include "snapshots/git/git_program.hpp"
#include "snapshots/git/object_id.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

// What a run keeps alive: refs/berth/runs/<run>/base, for example.
enum class RunRef { base, result, commits };

// The bare git repository of one workspace: its snapshots, and the commits of its runs. In-tree
// attributes have no effect here, so the bytes of a file are exactly those of its blob, and no
// filter ever runs.
//
// All calls block: make them on the pool. Several processes may use one repository at a time.
class Repository {
 public:
  // Finds or creates it. Two callers at a time get the same one.
  static Result<Repository> create(GitProgram git, const std::string& folder);
  // workspace_corrupt if the folder is not a repository of ours.
  static Result<Repository> open(GitProgram git, const std::string& folder);

  const std::string& folder() const { return folder_; }
  Result<GitEnd> run(const GitCall& call) const { return git_.run(folder_, call); }
  Result<std::string> output(GitCall call, std::size_t bytes_max = 1 << 20) const {
    return git_.output(folder_, std::move(call), bytes_max);
  }

  // Every object is there, whole, and what its name says. workspace_corrupt otherwise.
  Result<> verify() const;

  static Result<std::string> ref_of(std::string_view run, RunRef what);
  Result<std::optional<ObjectId>> ref(const std::string& name) const;
  // By name.
  Result<std::map<std::string, ObjectId>> refs(const std::string& prefix) const;
  // All or none, durably. The objects must be there.
  Result<> set_refs(const std::map<std::string, ObjectId>& refs) const;
  Result<> remove_refs(const std::vector<std::string>& names) const;
  // Only its refs: garbage collection removes what no other ref needs.
  Result<> forget_run(std::string_view run) const;

  // The tree of a commit, or the tree itself. snapshot_not_found if there is neither.
  Result<ObjectId> tree_of(const ObjectId& commit_or_tree) const;

  // The same for several, in one process.
  Result<std::vector<ObjectId>> trees_of(const std::vector<ObjectId>& commits_or_trees) const;

  // Held by all that add objects, until a ref names them.
  Result<FileLock> hold_objects() const;
  // Deletes every object that no ref needs. workspace_busy while objects are being added.
  Result<> collect_garbage() const;
  // On the disk.
  Result<std::uint64_t> bytes() const;

 private:
  Repository(GitProgram git, std::string folder)
      : git_(std::move(git)), folder_(std::move(folder)) {}

  GitProgram git_;
  std::string folder_;
};

}  // namespace berth::snapshots
