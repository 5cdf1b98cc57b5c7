#pragma once

#include "workspaces/confined.hpp"

namespace berth::workspaces {

// What to do about an entry that must not leave: a pipe, a device, a sparse file, a file with a
// second name if the root refuses those, an entry that is too deep or on a kernel file system.
enum class Unfit { refused, left_out };

struct PackOptions {
  Unfit unfit = Unfit::refused;
  ProgressSink progress = {};
};

struct LeftOut {
  std::string path;  // exact bytes, from the root
  std::string rule;  // as a sentence
};

struct Packed {
  static constexpr std::size_t named_max = 100;

  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;           // of content
  std::uint64_t left_out_count = 0;  // all of them
  std::vector<LeftOut> left_out;     // the first `named_max`
};

// Writes a folder's content, or one file, as a tar (pax) with paths relative to that folder, and
// with exact names and link targets, permission bits and times. Symbolic links are written as
// links. Owners are not written: their ids have no meaning elsewhere. Drafts of running transfers
// are left out.
//
// A file with several names is written as several files. The tree is checked before the first byte
// is written, so a refusal usually comes before it too. A file that changes after that is a
// `conflict`, and the sink has a partial archive. If a file only grows, its original length is
// written.
Result<Packed> archive_out(const Confined& root, std::string_view path, const ByteSink& sink,
                           const PackOptions& options = {});

}  // namespace berth::workspaces
