#pragma once

#include "snapshots/git/pack_writer.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace berth::snapshots {

// Makes the trees of a snapshot from its entries, which come in the order of their paths.
class TreeBuilder {
 public:
  // Trees that are known are not written again.
  TreeBuilder(PackWriter& pack, std::unordered_set<ObjectId> known)
      : pack_(pack), known_(std::move(known)), folders_(1) {}

  Result<> add(std::string_view path, GitMode mode, const ObjectId& id);
  // The root. Every other call comes before it.
  Result<ObjectId> finish();
  const std::vector<ObjectId>& trees() const { return trees_; }

 private:
  struct Item {
    std::string name;
    GitMode mode = GitMode::file;
    ObjectId id = {};
  };
  struct Folder {
    std::string name;
    std::vector<Item> items = {};
  };

  Result<> close_folder();
  Result<ObjectId> write(std::vector<Item> items);

  PackWriter& pack_;
  std::unordered_set<ObjectId> known_;
  std::vector<Folder> folders_;  // the root, and the folders on the way to the last path
  std::vector<ObjectId> trees_;
};

struct CommitText {
  ObjectId tree;
  std::vector<ObjectId> parents = {};
  std::int64_t seconds = 0;  // since 1970
  std::string message = {};
};
std::string text_of(const CommitText& commit);

}  // namespace berth::snapshots
