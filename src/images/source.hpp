#pragma once

#include "base/result.hpp"
#include "files/tree_writer.hpp"
#include "images/image.hpp"
#include "images/limits.hpp"
#include "images/oci.hpp"

#include <optional>
#include <string>

namespace berth::images {

using files::Meter;
using files::Phase;
using files::Progress;
using files::ProgressSink;

struct ImportOptions {
  // "sha256:..." of the manifest, or of the tar as given; anything else is refused.
  std::optional<std::string> expected_digest = {};
  Wanted wanted = {};
  Limits limits = image_limits();
  int stop = -1;  // the import ends with `cancelled` when it becomes readable
};

struct Unpacked {
  ImageKind kind = ImageKind::tar;
  std::optional<std::string> source_digest;
  std::string architecture;
  ImageConfig config;
  files::Tally tally;
};

// Unpacks a directory, a tar, an OCI layout (a directory or a tar of one) or a docker archive into
// the folder "root" of the draft. The kind is detected from the content. Anything else left in the
// draft may be removed.
//
// Layers are applied on top of each other into one tree, which contains no whiteouts at the end.
Result<Unpacked> unpack_source(const std::string& source, int draft, const ImportOptions& options,
                               Meter& meter);

}  // namespace berth::images
