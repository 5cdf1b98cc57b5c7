#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// The processes below a process, as /proc shows them. The list is out of date as soon as it is
// read, so a caller that kills by it repeats until nothing is left.
namespace berth::keeper {

struct ProcessStat {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t cpu_ticks = 0;  // its own and of the children that it waited for
  std::uint64_t start_ticks = 0;
  std::uint64_t resident_pages = 0;
};
// Empty if there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Parents before their children, without the root itself.
std::vector<pid_t> descendants_of(pid_t root);
// Stops them all, so that they neither fork nor reap. Parents are stopped before their children, so
// when a pass finds no new process, the tree is complete and none of its pids can be reused.
// Meanwhile a fork bomb hits its process limit, because stopped processes still count.
void stop_descendants_of(pid_t root);
// Kills them all; their parents reap them. Returns how many are left after the time limit:
// processes of other users, and those that the kernel cannot end now.
std::size_t kill_descendants_of(pid_t root, int limit_ms);
// Whether the calling process has children, including zombies. For a subreaper this shows whether
// descendants_of() is worth calling.
bool has_children();
// Same result as descendants_of(), from one scan of /proc, for kernels without the `children`
// files.
std::vector<pid_t> descendants_by_scan(pid_t root);

}  // namespace berth::keeper
