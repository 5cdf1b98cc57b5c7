#pragma once

#include <string_view>

namespace berth::keeper {

// The version of this program, as CMakeLists.txt states it.
std::string_view version();

}  // namespace berth::keeper
