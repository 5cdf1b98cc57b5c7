#pragma once

#include "workspaces/disk.hpp"

namespace berth::workspaces {

// Removes `name` in an open folder and all below it, also while others write there: links are
// removed and never followed, mount points are refused. However deep the tree is, two folders are
// open at a time. What stops half-way may be repeated.
Result<> remove_beneath(int folder, const std::string& name, std::string_view shown,
                        const Limits& limits);

}  // namespace berth::workspaces
