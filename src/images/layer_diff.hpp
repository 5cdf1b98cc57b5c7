#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "images/disk.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace berth::images {

enum class LayerChange : std::uint8_t { added, changed, removed };
enum class LayerEntry : std::uint8_t { file, directory, symbolic_link, other };

// A path below "/" that is not as the layers below say.
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

// What is there without a layer, because every sandbox is born with it. It belongs to the root of
// the sandbox, and has no attributes of users.
struct BornWith {
  std::string path;  // without the leading "/"
  LayerEntry entry = LayerEntry::directory;
  std::string text = {};  // of a file, empty where a mount covers it; where a link points to
  mode_t mode = 0;        // of a file or folder; 0: it is not compared
};

struct DiffRequest {
  int upper = -1;              // what was written
  std::vector<Fd> lower = {};  // the layers below, the uppermost first
  std::vector<BornWith> born_with = {};
  // Whether what it is born with lies in the upper layer itself, or below all layers.
  enum class Birth { below, in_upper } birth = Birth::below;
  OverlayMarks marks = OverlayMarks::trusted;  // of all layers
  std::set<std::string> own = {};              // folders that setup makes; they are nobody's change
  std::size_t differences_max = 10'000;
  std::size_t looks_max = 1'000'000;  // entries of the upper layer
  std::size_t depth_max = 256;        // folders in folders
  // Of files that look as they were, in all. One that is beyond it is told of as changed.
  std::uint64_t compared_bytes_max = std::uint64_t{8} << 30;
};

// What an upper layer adds to, changes in and removes from the layers below, in order of path. A
// file has changed when its content, size, mode, owner, time or attributes of users have; a folder
// when it stands where something else did, or its mode, owner or attributes have. No link is
// followed and other file systems are not entered. Blocks. The tree may change meanwhile; then the
// answer is of something in between.
Result<LayerDiff> diff_layers(const DiffRequest& request);

}  // namespace berth::images
