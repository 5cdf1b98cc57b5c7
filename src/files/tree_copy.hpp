#pragma once

#include "base/result.hpp"
#include "files/overlay.hpp"
#include "files/tree_writer.hpp"

namespace berth::files {

// A sandbox's file ids are shifted into its own range. A copy has them as the sandbox saw them, so
// that any other sandbox can start from it.
struct IdRange {
  std::uint32_t first = 0;
};

struct CopyOptions {
  Rules rules = Rules::image;
  IdRange ids = {};
  OverlayMarks marks = OverlayMarks::trusted;  // of an upper layer
};

// Copies the content of an open folder, through the writer and its limits. Content is shared with
// the original if the file system can (reflink); holes and hard links are preserved. Links are not
// followed and other file systems are not entered. No extended attributes are copied, except for
// those of an upper layer that users set, or that mark a folder as opaque.
// If the tree changes meanwhile, the copy may be of an intermediate state, but nothing worse.
Result<> copy_tree(int from, TreeWriter& into, const CopyOptions& options, Meter& meter);

}  // namespace berth::files
