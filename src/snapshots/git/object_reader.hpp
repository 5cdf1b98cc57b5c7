#pragma once

#include "snapshots/git/object_id.hpp"
#include "snapshots/git/repository.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

struct TreeEntry {
  std::string path;  // exact bytes, from the root
  GitMode mode = GitMode::file;
  ObjectId id = {};

  friend bool operator==(const TreeEntry&, const TreeEntry&) = default;
};

// All entries of a tree but the folders themselves, in the order of their paths.
// snapshot_not_found, path_refused for modes that nobody may have, workspace_too_large for more
// than `entries_max`.
Result<std::vector<TreeEntry>> list_tree(const Repository& repository, const ObjectId& tree,
                                         std::uint64_t entries_max);

// What receives blobs, one after the other.
class BlobSink {
 public:
  virtual ~BlobSink() = default;
  virtual Result<> begin(std::size_t index, std::uint64_t bytes) = 0;
  virtual Result<> write(std::string_view piece) = 0;
  virtual Result<> end() = 0;
};

// Streams the blobs in their order, whatever their size, through one process.
Result<> read_blobs(const Repository& repository, const std::vector<ObjectId>& blobs,
                    BlobSink& sink);
// One small blob. workspace_too_large if it is larger.
Result<std::string> read_blob(const Repository& repository, const ObjectId& blob,
                              std::uint64_t bytes_max);

}  // namespace berth::snapshots
