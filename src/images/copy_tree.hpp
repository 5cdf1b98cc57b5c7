#pragma once

#include "base/result.hpp"
#include "images/disk.hpp"
#include "images/tree_writer.hpp"

namespace berth::images {

// The ids of a sandbox's files are shifted into a range of its own. A copy holds them as the
// sandbox saw them, so that any other sandbox can start from it.
struct IdRange {
  std::uint32_t first = 0;
};

struct CopyOptions {
  TreeKind kind = TreeKind::image;
  IdRange ids = {};
  OverlayMarks marks = OverlayMarks::trusted;  // of an upper layer
};

// Copies what an open folder holds, through the writer and its limits. Content is shared with the
// original where the file system can (reflink), holes stay holes and hard links stay links. No link
// is followed, other file systems are not entered, and no extended attribute is taken, but those of
// an upper layer that users set, or by which its overlay says that a folder is opaque.
// Somebody may change the tree meanwhile: then the copy is of something in between, and no more
// than that.
Result<> copy_tree(int from, TreeWriter& into, const CopyOptions& options, Meter& meter);

}  // namespace berth::images
