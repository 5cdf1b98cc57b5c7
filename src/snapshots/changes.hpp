#pragma once

#include "snapshots/git/object_reader.hpp"
#include "snapshots/git/repository.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace berth::snapshots {

enum class ChangeKind { added, modified, deleted, type_changed };
std::string_view name_of(ChangeKind kind);

// One path that differs between two snapshots.
struct Change {
  std::string path;  // exact bytes
  ChangeKind kind = ChangeKind::modified;
  std::optional<GitMode> old_mode = {};
  std::optional<GitMode> new_mode = {};
  ObjectId old_id = {};
  ObjectId new_id = {};
  std::uint64_t old_bytes = 0;
  std::uint64_t new_bytes = 0;
  bool binary = false;
  std::uint64_t lines_added = 0;  // of text
  std::uint64_t lines_removed = 0;
};

struct ChangeLimits {
  std::uint64_t changes_max = 500'000;
  std::uint64_t diff_bytes_max = 1 << 20;  // of one file's diff
  std::uint64_t patch_bytes_max = 16ULL << 30;
};

struct FileDiff {
  std::string text;
  bool cut = false;  // there is more than the limit allows
};

// The paths that differ, without sizes and line counts: the quick form. In the order of the paths.
Result<std::vector<Change>> differing_paths(const Repository& repository, const ObjectId& base,
                                            const ObjectId& result,
                                            const ChangeLimits& limits = {});
// With sizes and line counts.
Result<std::vector<Change>> list_changes(const Repository& repository, const ObjectId& base,
                                         const ObjectId& result, const ChangeLimits& limits = {});
// A unified diff of one path. A binary file gives one line with its sizes.
Result<FileDiff> diff_file(const Repository& repository, const ObjectId& base,
                           const ObjectId& result, const std::string& path,
                           const ChangeLimits& limits = {});
// All changes as a patch that `git apply` accepts, with binary files.
Result<> write_patch(const Repository& repository, const ObjectId& base, const ObjectId& result,
                     const ByteSink& sink, const ChangeLimits& limits = {});

}  // namespace berth::snapshots
