#pragma once

#include "workspaces/confined.hpp"

namespace berth::workspaces {

// Which symbolic links of an archive are made. inside: relative ones that stay below the root
// wherever they stand. any: as they are written, for a root that is somebody's "/" and where only
// its own programs follow them; we never do.
enum class LinkRule { inside, any, refused };

struct UnpackOptions {
  std::optional<Owner> owner = {};  // of everything; owners in the archive mean nothing here
  LinkRule links = LinkRule::inside;
  // For whoever sent a link that is refused.
  std::string link_remedy = "send what the link leads to in its place, or leave it out";
  ProgressSink progress = {};
};

struct Unpacked {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t set_id_bits_dropped = 0;
};

// Unpacks a tar, plain or compressed with gzip or zstd, into a folder, which is made as needed.
//
// Files, folders, symbolic links and hard links to files of the same archive are made; everything
// else, and every path that is absolute, holds ".." or leads through a link, is refused by its
// name, and the whole archive with it. Folders that are there keep their look; files and links that
// are there are replaced.
//
// Everything is unpacked into a draft folder in the nearest folder that exists, and moved into
// place when all of it is there: an archive that is broken, refused or too large for the disk
// changes nothing. Only a failure of the moves themselves can leave a part.
Result<Unpacked> archive_in(const Confined& root, std::string_view path, const ByteSource& source,
                            const UnpackOptions& options = {});

}  // namespace berth::workspaces
