#pragma once

#include "base/result.hpp"
#include "images/image.hpp"
#include "images/oci.hpp"
#include "images/tree_writer.hpp"

#include <optional>
#include <string>

namespace berth::images {

struct ImportOptions {
  // "sha256:..." of the manifest, or of the tar as it comes; anything else is refused.
  std::optional<std::string> expected_digest = {};
  Wanted wanted = {};
  Limits limits = {};
  int stop = -1;  // when something can be read from it, the import ends: `cancelled`
};

struct Unpacked {
  ImageKind kind = ImageKind::tar;
  std::optional<std::string> source_digest;
  std::string architecture;
  ImageConfig config;
  Tally tally;
};

// Unpacks a directory, a tar, an OCI layout (a directory or a tar of one) or an archive of docker
// into the folder "root" of the draft. Which one it is, is seen from its content. What else is left
// in the draft may be removed.
//
// Layers are applied on each other into one tree, and their whiteouts are gone when it is done.
Result<Unpacked> unpack_source(const std::string& source, int draft, const ImportOptions& options,
                               Meter& meter);

}  // namespace berth::images
