#pragma once

#include "base/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace berth::snapshots {

// Why a name may not be in a tree that we write; empty if it may. Refused are the empty name, "."
// and "..", names with a slash, a NUL or a control character, names over 255 bytes, and every name
// that some file system takes for ".git": in another case, with characters that HFS+ ignores, as an
// NTFS short name or stream, or behind a backslash.
std::string_view problem_of_name(std::string_view name);

// A whole path of a tree: relative, and every name as above. path_refused names path and rule.
Result<> check_tree_path(std::string_view path, std::size_t depth_max);

}  // namespace berth::snapshots
