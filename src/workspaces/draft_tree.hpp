#pragma once

#include "workspaces/archive_in.hpp"
#include "workspaces/tar_reader.hpp"

#include <map>

namespace berth::workspaces {

// The content of an archive, written below a folder that contains nothing else. Whatever the order
// and names of its entries, each path starts at that folder's descriptor and follows no link.
//
// Folders remain open to their owner until `finish` sets their final mode and time: a read-only
// folder could not be filled, and filling it would change its time.
class DraftTree {
 public:
  // `depth` is the number of folders between the root and the tree's final place: a link may lead
  // up that far. The references must outlive the tree.
  DraftTree(int folder, std::size_t depth, const Limits& limits, const UnpackOptions& options,
            Meter& meter)
      : folder_(folder), depth_(depth), limits_(limits), options_(options), meter_(meter) {}

  // Reads a file's content from the reader.
  Result<> put(const TarEntry& entry, TarReader& reader);
  Result<> finish();
  const Unpacked& unpacked() const { return unpacked_; }

 private:
  struct FolderLook {
    mode_t mode = 0755;
    timespec modified = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  };

  Result<> charge(const TarEntry& entry);
  Result<Fd> folder_of(const Path& path, std::size_t count);
  Result<> remember(const std::string& path, const FolderLook& look);
  Result<> put_file(const Path& path, const TarEntry& entry, TarReader& reader);
  Result<> put_directory(const Path& path, const TarEntry& entry);
  Result<> put_symbolic_link(const Path& path, const TarEntry& entry);
  Result<> put_hard_link(const Path& path, const TarEntry& entry);
  Result<> check_target(const Path& path, const std::string& target) const;
  Result<> clear(int folder, const Path& path) const;
  Result<> fill(int fd, const Path& path, const TarEntry& entry, TarReader& reader);
  mode_t kept_mode(const TarEntry& entry);

  int folder_;
  std::size_t depth_;
  const Limits& limits_;
  const UnpackOptions& options_;
  Meter& meter_;
  Unpacked unpacked_;
  std::map<std::string, FolderLook> looks_;
  std::size_t look_bytes_ = 0;
};

}  // namespace berth::workspaces
