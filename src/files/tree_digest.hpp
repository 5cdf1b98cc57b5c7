#pragma once

#include "base/result.hpp"
#include "files/limits.hpp"
#include "files/progress.hpp"

#include <cstdint>
#include <string>

namespace berth::files {

struct TreeDigest {
  std::string digest;  // "sha256:..."
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

// One digest for a whole tree: the SHA-256 over a record of each entry, in byte order of their
// names, a folder before its content. A record is the type, the mode, the owner, the path, and the
// SHA-256 of a file's content or the target of a link. Times, hard links and the order on disk do
// not count. docs/images.md has the exact form.
//
// Without root all files belong to the user who unpacked them; then the owner counts as 0:0.
Result<TreeDigest> digest_of_tree(int root, const Limits& limits, Meter& meter);

}  // namespace berth::files
