#pragma once

#include <string_view>

namespace berth {

// A place where the crash tests kill the process: BERTH_FAULT_POINT=NAME ends it there with
// SIGKILL, as a power cut would, and BERTH_FAULT_POINT=NAME:3 the third time it passes. Without the
// variable it costs one comparison.
//
// The process first appends the name to the file BERTH_FAULT_LOG, if there is one, so that
// tools/fault_points.py knows at which points a process has died. The name is a literal, so that
// the same tool finds every point in the source. Both variables are for those who start the server:
// commands, sandboxes and plugins neither inherit nor change its environment.
void fault_point(std::string_view name);

}  // namespace berth
