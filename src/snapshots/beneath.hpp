#pragma once

#include "files/beneath.hpp"
#include "files/limits.hpp"
#include "files/path.hpp"
#include "files/stream.hpp"

#include <string>
#include <string_view>

// The calls of the file library with what is the same for every folder of a snapshot: no link is
// followed, and no other file system is entered.
namespace berth::snapshots {

using files::ByteSink;
using files::ByteSource;
using files::disk_failure;
using files::escaped;
using files::refuse;
using files::source_of;
using files::write_at;

// -1 and errno on failure.
inline int open_beneath(int folder, const std::string& path, int flags, mode_t mode = 0) {
  return files::open_beneath(folder, path, flags, files::Mounts::refused, mode);
}

inline Result<std::string> read_link(int folder, const std::string& name) {
  return files::read_link(folder, name, name);
}

inline Result<> remove_beneath(int folder, const std::string& name) {
  return files::remove_beneath(folder, name, name, files::Limits{}.removed_max);
}

}  // namespace berth::snapshots
