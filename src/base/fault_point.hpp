#pragma once

#include <string_view>

namespace berth {

// A place where the crash tests kill the process: BERTH_FAULT_POINT=NAME ends it there with
// SIGKILL, as a power cut would, and BERTH_FAULT_POINT=NAME:3 the third time it passes. Without the
// variable it costs one comparison.
void fault_point(std::string_view name);

}  // namespace berth
