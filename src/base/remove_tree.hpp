#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <string>

namespace berth {

// Removes a folder and all below it, or a file: also folders that were made unwritable, and trees
// deeper than a path can be long. What is not there is fine. Symbolic links are removed, never
// followed. Nobody else may be writing there meanwhile. What stops half-way may be repeated.
Result<> remove_tree(const std::string& path);

// The same of all that is in a folder, which is open to be read and stays. Where somebody writes
// there meanwhile it may fail, and reaches nothing outside of the folder all the same. The entry
// that is spared remains with all that is in it.
Result<> empty_folder(Fd folder, const std::string& shown, const std::string& spared = {});

}  // namespace berth
