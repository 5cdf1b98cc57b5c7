#pragma once

#include <sys/resource.h>

#include <string_view>

namespace berth::keeper::sandbox {

// Which processes the kernel kills first when memory runs out, on the host or in the sandbox:
// higher scores first. Pid 1 before other host processes, because its end frees all that the
// sandbox has. Its children before itself, however small they are. The memory of in-memory files
// counts for no process.
inline constexpr std::string_view init_preference = "300";
inline constexpr std::string_view warden_preference = "600";

// Pid 1 of a sandbox: starts wardens when the keeper asks, reaps orphans, and ends with the keeper,
// whereupon the kernel ends everything inside. It reads nothing that comes from inside.
// `preference` is its own /proc/self/oom_score_adj, opened while that was allowed, or -1.
[[noreturn]] void run_init(int control, int preference, rlimit open_files);

}  // namespace berth::keeper::sandbox
