#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "files/overlay.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::files {

enum class LayerChange : std::uint8_t { added, changed, removed };
enum class LayerEntry : std::uint8_t { file, directory, symbolic_link, other };

// A path below "/" that differs from the layers below.
struct LayerDifference {
  std::string path;
  LayerChange change = LayerChange::added;
  LayerEntry entry = LayerEntry::file;
  std::uint64_t bytes = 0;
};

struct LayerDiff {
  std::vector<LayerDifference> differences = {};
  bool truncated = false;
};

// Initial content: what exists without a layer in every sandbox. It belongs to the sandbox's root
// and has no user attributes.
struct BornWith {
  std::string path;  // without the leading "/"
  LayerEntry entry = LayerEntry::directory;
  std::string text = {};  // file content, empty if a mount covers it; link target
  mode_t mode = 0;        // of a file or folder; 0: not compared
};

struct DiffRequest {
  int upper = -1;              // what was written
  std::vector<Fd> lower = {};  // the layers below, uppermost first
  std::vector<BornWith> born_with = {};
  // Whether the initial content is in the upper layer itself, or below all layers.
  enum class Birth { below, in_upper } birth = Birth::below;
  OverlayMarks marks = OverlayMarks::trusted;  // of all layers
  std::set<std::string> own = {};              // folders that setup makes, which are not reported
  std::size_t differences_max = 10'000;
  std::size_t looks_max = 1'000'000;  // entries of the upper layer
  std::size_t depth_max = 256;        // folders in folders
  // Total for files that look unchanged. A file beyond it is reported as changed.
  std::uint64_t compared_bytes_max = std::uint64_t{8} << 30;
};

// What an upper layer adds to, changes in and removes from the layers below, sorted by path. A file
// has changed if its content, size, mode, owner, time or user attributes have. A folder has changed
// if it replaces something else, or if its mode, owner or attributes have. Links are not followed
// and other file systems are not entered. Blocks. If the tree changes meanwhile, the result may be
// of an intermediate state.
Result<LayerDiff> diff_layers(const DiffRequest& request);

}  // namespace berth::files
