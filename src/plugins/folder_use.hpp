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

// The use of a folder and everything below it. Links are counted and not followed. Stops when it
// exceeds `most`, where 0 means no limit. An unreadable entry is an error, so that files cannot be
// hidden in it. Blocks.
Result<FolderUse> measure_folder(const std::string& path, const FolderUse& most);

// Why the plugin must be stopped; nothing if it may continue.
std::optional<std::string> why_too_much(const Result<FolderUse>& use, const FolderUse& most);

}  // namespace berth::plugins
