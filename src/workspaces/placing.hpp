#pragma once

#include "workspaces/confined.hpp"

namespace berth::workspaces {

// Moves what a draft folder holds into a folder of the same file system, which may hold things
// already: folders are joined and keep their look, files and links are replaced. Looks first
// whether all of it fits (a file where a folder is, or the other way round, does not), and moves
// nothing otherwise.
Result<> place(int draft, int target, std::string_view shown, const Confined& root);

}  // namespace berth::workspaces
