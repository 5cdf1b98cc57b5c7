#pragma once

#include <string_view>

namespace berth::cli {

// The version of this program, as CMakeLists.txt states it.
std::string_view version();

}  // namespace berth::cli
