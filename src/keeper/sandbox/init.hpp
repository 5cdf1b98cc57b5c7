#pragma once

#include <sys/resource.h>

#include <string_view>

namespace berth::keeper::sandbox {

// Whom the kernel ends when memory runs out, on the host or in the sandbox: more are preferred.
// Pid 1 before others of the host, because all that it has goes with it; whom it starts before it,
// however small they are. What a file in memory takes is nobody's.
inline constexpr std::string_view init_preference = "300";
inline constexpr std::string_view warden_preference = "600";

// Pid 1 of a sandbox: starts wardens when the keeper asks, reaps what nobody waits for, and ends
// with the keeper, whereupon the kernel ends everything inside. It reads nothing that comes from
// inside.
// `preference` is its own /proc/self/oom_score_adj, opened while that was allowed, or -1.
[[noreturn]] void run_init(int control, int preference, rlimit open_files);

}  // namespace berth::keeper::sandbox
