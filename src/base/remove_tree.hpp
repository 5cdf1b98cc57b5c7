#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <string>

namespace berth {

// Removes a folder and everything below it, or a file: also unwritable folders, and trees deeper
// than the longest path. Succeeds if the path does not exist. Symbolic links are removed, never
// followed. No other process may write there meanwhile. A removal that failed half-way can be
// repeated.
Result<> remove_tree(const std::string& path);

// The same for the contents of an open folder, which remains. If another process writes there
// meanwhile it may fail, but never reaches outside the folder. The spared entry remains with its
// contents.
Result<> empty_folder(Fd folder, const std::string& shown, const std::string& spared = {});

}  // namespace berth
