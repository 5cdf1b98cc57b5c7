#pragma once

#include "workspaces/confined.hpp"

namespace berth::workspaces {

// What is done about a thing that must not leave: a pipe, a device, a file made of holes or, where
// the root refuses those, with a second name, what lies too deep or on the kernel's own file
// systems.
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

// Writes what a folder holds, or one file, as a tar (pax) with paths from that folder; names and
// link targets to the byte, permission bits, times. Symbolic links go as links. Owners do not go:
// their numbers mean nothing elsewhere. Drafts of transfers under way are no part of the tree.
//
// A file with several names goes as several files. The tree is looked at before the first byte, so
// that a refusal mostly comes before it too. A file that changes after that is a `conflict`, and
// the sink has half an archive; of one that only grows goes what it had.
Result<Packed> archive_out(const Confined& root, std::string_view path, const ByteSink& sink,
                           const PackOptions& options = {});

}  // namespace berth::workspaces
