#pragma once

#include "workspaces/disk.hpp"
#include "workspaces/path.hpp"
#include "workspaces/removal.hpp"
#include "workspaces/stream.hpp"

#include <string>
#include <string_view>

// All that this folder takes from the file helpers of its neighbour, so that a move of those
// helpers is an edit of this file.
namespace berth::snapshots {

using workspaces::ByteSink;
using workspaces::ByteSource;
using workspaces::disk_failure;
using workspaces::escaped;
using workspaces::refuse;
using workspaces::source_of;
using workspaces::write_at;

// Opens below the folder: follows no link, and enters no other file system. -1 and errno.
inline int open_beneath(int folder, const std::string& path, int flags, mode_t mode = 0) {
  return workspaces::open_beneath(folder, path, flags, workspaces::Mounts::refused, mode);
}

inline Result<std::string> read_link(int folder, const std::string& name) {
  return workspaces::read_link(folder, name, name);
}

inline Result<> remove_beneath(int folder, const std::string& name) {
  return workspaces::remove_beneath(folder, name, name, {});
}

}  // namespace berth::snapshots
