#pragma once

#include "workspaces/confined.hpp"

namespace berth::workspaces {

// Moves a draft folder's content into a folder on the same file system, which may have content:
// folders are merged and keep their mode and owner, files and links are replaced. First checks that
// everything fits (a file in place of a folder, or the reverse, does not); otherwise moves nothing.
Result<> place(int draft, int target, std::string_view shown, const Confined& root);

}  // namespace berth::workspaces
