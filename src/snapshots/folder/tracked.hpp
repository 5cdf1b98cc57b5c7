#pragma once

#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

// Which paths of a folder its own git tracks: those are taken even if .gitignore names them. The
// foreign repository is never opened: a copy of its index is read inside ours.
class Tracked {
 public:
  // `root` is the folder. Nothing if it is not a git repository.
  static Result<std::optional<Tracked>> of(const Repository& ours, int root,
                                           const std::string& shown);

  bool has(std::string_view path) const;
  bool has_below(std::string_view folder) const;
  // Of a submodule.
  std::optional<ObjectId> commit_of(std::string_view path) const;
  // .git/info/exclude
  const std::string& excludes() const { return excludes_; }

 private:
  std::vector<std::string> paths_;  // sorted
  std::map<std::string, ObjectId, std::less<>> commits_;
  std::string excludes_;
};

// The commit that is checked out in a nested repository whose .git is an open folder.
std::optional<ObjectId> head_of(int git_folder);

// A small regular file below a folder; nothing if it is not there, too large, or anything else.
std::optional<std::string> read_small(int folder, const std::string& path, std::size_t bytes_max);

}  // namespace berth::snapshots
