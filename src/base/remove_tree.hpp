#pragma once

#include "base/result.hpp"

#include <string>

namespace berth {

// Removes a folder and all below it, or a file: also folders that were made unwritable, and trees
// deeper than a path can be long. What is not there is fine. Symbolic links are removed, never
// followed. Nobody else may be writing there meanwhile. What stops half-way may be repeated.
Result<> remove_tree(const std::string& path);

}  // namespace berth
