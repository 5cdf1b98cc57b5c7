#pragma once

#include <sys/resource.h>

namespace berth::keeper::sandbox {

// Pid 1 of a sandbox: starts wardens when the keeper asks, reaps what nobody waits for, and ends
// with the keeper, whereupon the kernel ends everything inside. It reads nothing that comes from
// inside.
[[noreturn]] void run_init(int control, rlimit open_files);

}  // namespace berth::keeper::sandbox
