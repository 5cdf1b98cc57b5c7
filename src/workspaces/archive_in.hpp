#pragma once

#include "files/entry.hpp"
#include "workspaces/confined.hpp"

namespace berth::workspaces {

using files::LinkRule;

struct UnpackOptions {
  std::optional<Owner> owner = {};  // of everything; owners in the archive are ignored
  LinkRule links = LinkRule::inside;
  // The remedy for the sender of a refused link.
  std::string link_remedy = "send what the link leads to in its place, or leave it out";
  ProgressSink progress = {};
};

struct Unpacked {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t set_id_bits_dropped = 0;
};

// Unpacks a tar, plain or compressed with gzip or zstd, into a folder, which is created as needed.
//
// Files, folders, symbolic links and hard links to files of the same archive are made. Any other
// entry, and any path that is absolute, contains ".." or leads through a link, is refused by name,
// and the whole archive with it. Existing folders keep their mode and owner; existing files and
// links are replaced.
//
// Everything is unpacked into a draft folder in the nearest existing folder, and moved into place
// when it is complete: an archive that is broken, refused or too large for the disk changes
// nothing. Only a failure of the moves themselves can leave a part.
Result<Unpacked> archive_in(const Confined& root, std::string_view path, const ByteSource& source,
                            const UnpackOptions& options = {});

}  // namespace berth::workspaces
