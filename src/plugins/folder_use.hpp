#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::plugins {

struct FolderUse {
  std::int64_t bytes = 0;  // on the disk
  std::int64_t files = 0;
};

// What is in a folder, with all below it. Links are counted and not followed. Stops when it is over
// `most`, of which 0 is without a limit. What cannot be read is an error: nobody hides files in it.
// Blocks.
Result<FolderUse> measure_folder(const std::string& path, const FolderUse& most);

// Why a plugin may not go on with this; nothing: it may.
std::optional<std::string> why_too_much(const Result<FolderUse>& use, const FolderUse& most);

}  // namespace berth::plugins
