#pragma once

#include <string_view>

namespace berth {

// A point where the crash tests kill the process: BERTH_FAULT_POINT=NAME ends it there with
// SIGKILL, like a power cut, and BERTH_FAULT_POINT=NAME:3 the third time it passes. Without the
// variable it costs one comparison.
//
// The process first appends the name to the file BERTH_FAULT_LOG, if it is set, so that
// tools/fault_points.py knows at which points a process has died. The name is a literal, so that
// the same tool finds every point in the source. Only the process that starts the server sets these
// variables: commands, sandboxes and plugins neither inherit nor change its environment.
void fault_point(std::string_view name);

}  // namespace berth
