#pragma once

#include "base/errc.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <string>

namespace berth::files {

// whiteout: the mark of an overlay layer that hides an entry of the layers below. other: a socket,
// or a type that this program does not know.
enum class EntryType { file, directory, symbolic_link, hard_link, device, pipe, whiteout, other };

// One entry of a tree, as its archive or folder describes it. Nothing in it is checked.
struct Entry {
  std::string path;  // as spelled there
  EntryType type = EntryType::file;
  mode_t mode = 0644;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  timespec modified = {};
  std::uint64_t bytes = 0;
  std::string target = {};  // of a link
};

inline EntryType type_of(const struct stat& status) {
  switch (status.st_mode & S_IFMT) {
    case S_IFREG: return EntryType::file;
    case S_IFDIR: return EntryType::directory;
    case S_IFLNK: return EntryType::symbolic_link;
    case S_IFIFO: return EntryType::pipe;
    case S_IFCHR: return status.st_rdev == makedev(0, 0) ? EntryType::whiteout : EntryType::device;
    case S_IFBLK: return EntryType::device;
    default: return EntryType::other;
  }
}

inline bool same_moment(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

// What a tree is for. That decides which entries it may have, who owns them, and the code of a
// refusal.
enum class Rules {
  image,      // files, folders and links, each with its owner; devices below dev/ are left out
  layer,      // a sandbox's upper layer: also whiteouts; its pipes and sockets are left out
  workspace,  // files, folders and links, all of one owner; no entry replaces a folder
};

constexpr Errc refusal_of(Rules rules) {
  return rules == Rules::workspace ? Errc::path_refused : Errc::image_invalid;
}

// Which symbolic links are made. inside: relative ones that remain below the root wherever they
// are. any: as written, for a root that is a sandbox's "/" and where only its own programs follow
// them; we never do.
enum class LinkRule { inside, any, refused };

}  // namespace berth::files
