#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

// Processes below a process, as /proc shows them. The picture is old the moment it is taken; who
// kills by it looks again until nothing is left.
namespace berth::keeper {

struct ProcessStat {
  pid_t parent = 0;
  char state = '?';
  std::uint64_t cpu_ticks = 0;  // its own and of the children it waited for
  std::uint64_t start_ticks = 0;
  std::uint64_t resident_pages = 0;
};
// Nothing when there is no such process.
std::optional<ProcessStat> process_stat(pid_t pid);
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// Parents before their children, without the root itself.
std::vector<pid_t> descendants_of(pid_t root);
// Stops them all, so that they neither fork nor reap. Parents before their children, so when a look
// finds nobody new, the tree is complete and none of its pids can be reused. A fork bomb runs into
// its own limit of processes meanwhile, because the stopped ones keep their places.
void stop_descendants_of(pid_t root);
// Ends them all; whoever is their parent reaps them. How many are left after the limit: those of
// other users, and those that the kernel cannot end now.
std::size_t kill_descendants_of(pid_t root, int limit_ms);
// Whether the calling process has any, ended ones that nobody has waited for among them. For one
// that its orphans come back to, this says whether descendants_of() is worth the look.
bool has_children();
// What descendants_of() finds, from one look at all of /proc, for kernels without the `children`
// files.
std::vector<pid_t> descendants_by_scan(pid_t root);

}  // namespace berth::keeper
