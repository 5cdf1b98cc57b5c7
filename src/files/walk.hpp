#pragma once

#include "files/beneath.hpp"
#include "files/entry.hpp"
#include "files/limits.hpp"

#include <compare>
#include <string>
#include <vector>

namespace berth::files {

// Two names with the same identity are hard links to one file.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;

  auto operator<=>(const FileId&) const = default;
};

// Everything below one folder: a folder before its content, the names of each folder in byte order,
// so that two walks of the same tree agree. Each step starts at the parent folder's descriptor. So
// a folder that is renamed is still the one that was entered, and a name that became a link is a
// link. The stack is a vector; it holds one descriptor and the remaining names for each folder on
// the way down, and never more names than entries are allowed.
class Walk {
 public:
  struct Item {
    std::string path;  // from the start of the walk
    std::string name;
    int folder = -1;          // the open folder that contains it, valid until the next call
    Found found = {};         // empty if it was refused; has mode, size, time and owner
    std::string target = {};  // of a symbolic link
    std::optional<Error> refusal = {};

    EntryType type() const { return type_of(found.status); }
    FileId id() const { return {found.status.st_dev, found.status.st_ino}; }
    bool has_other_names() const { return !found.is_directory() && found.status.st_nlink > 1; }
  };

  // `shown` is how the caller knows the folder.
  static Result<Walk> from(int folder, std::string_view shown, Mounts mounts, const Limits& limits);

  // Empty at the end. Fails if the tree has too many entries. Entries that disappeared meanwhile
  // are left out. An entry that may not be accessed or is too deep is an item with its refusal.
  Result<std::optional<Item>> next();
  // Leaves out the content of the folder that `next` returned last.
  void skip_content();

 private:
  struct Frame {
    Names folder;
    std::vector<std::string> names;  // that are left, the next one last
    std::size_t path_bytes;          // of the folder's own path, in path_
  };
  Walk(std::string_view shown, Mounts mounts, const Limits& limits)
      : shown_(shown == "." ? "" : std::string{shown} + "/"), mounts_(mounts), limits_(limits) {}

  Result<> enter(int folder, const std::string& path, const std::string& shown);
  Result<std::optional<Item>> examine(const Frame& frame, std::string name);

  std::string shown_;
  Mounts mounts_;
  Limits limits_;
  std::vector<Frame> frames_;
  std::string path_;
  std::uint64_t entries_ = 0;
  bool is_entered_ = false;  // the last item is the folder of the last frame
};

}  // namespace berth::files
