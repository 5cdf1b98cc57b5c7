#pragma once

#include "workspaces/disk.hpp"

namespace berth::workspaces {

// Removes `name` in an open folder and everything below it, even while other processes write there:
// links are removed and never followed, mount points are refused. Only two folders are open at a
// time, however deep the tree is. An interrupted removal may be repeated.
Result<> remove_beneath(int folder, const std::string& name, std::string_view shown,
                        const Limits& limits);

}  // namespace berth::workspaces
