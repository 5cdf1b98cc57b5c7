#pragma once

#include "base/result.hpp"
#include "snapshots/folder/scan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace berth::snapshots {

// One path of the target that changes. Its draft and what it replaces share a slot: a name in the
// draft folder.
struct ApplyStep {
  std::string path;
  std::string slot;
  std::optional<FileState> before = {};  // what the snapshot of the target saw there
  std::optional<FileState> after = {};   // the draft; absent: the path is removed
};

// What an apply is about to do, written before it does the first step.
struct ApplyJournal {
  std::string target = {};
  std::string draft = {};  // the name of the draft folder in the target
  std::vector<ApplyStep> steps = {};

  std::string text() const;
  // Nothing if the text is not a whole journal.
  static std::optional<ApplyJournal> parse(std::string_view text);
};

}  // namespace berth::snapshots
