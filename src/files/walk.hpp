#pragma once

#include "workspaces/disk.hpp"

#include <string>
#include <vector>

namespace berth::workspaces {

// Everything below one folder, folders before their content, in file-system order. Each step starts
// at the parent folder's descriptor. So a folder that is renamed is still the one that was entered,
// and a name that became a link is a link. The stack is a vector; it holds one descriptor and one
// buffer for each folder on the way down.
class Walk {
 public:
  struct Item {
    std::string path;  // from the start of the walk
    std::string name;
    int folder = -1;   // the open folder that contains it, valid until the next call
    Found found = {};  // empty if it was refused
    std::optional<Error> refusal = {};
  };

  // `shown` is how the caller knows the folder.
  static Result<Walk> from(int folder, std::string_view shown, Mounts mounts, Limits limits);

  // Empty at the end. Fails if the tree has too many entries. Entries that disappeared meanwhile
  // are left out. An entry that may not be accessed or is too deep is an item with its refusal.
  Result<std::optional<Item>> next();

 private:
  struct Frame {
    Names names;
    std::size_t path_bytes;  // of the folder's own path, in path_
  };
  Walk(std::string_view shown, Mounts mounts, const Limits& limits)
      : shown_(shown == "." ? "" : std::string{shown} + "/"), mounts_(mounts), limits_(limits) {}

  Result<std::optional<Item>> examine(const Frame& frame, std::string name);
  Result<> enter(Item& item);

  std::string shown_;
  Mounts mounts_;
  Limits limits_;
  std::vector<Frame> frames_;
  std::string path_;
  std::uint64_t entries_ = 0;
};

}  // namespace berth::workspaces
