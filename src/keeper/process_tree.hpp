#pragma once

#include <sys/types.h>

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
// The same from one look at all of /proc, for kernels without the `children` files.
std::vector<pid_t> descendants_by_scan(pid_t root);

}  // namespace berth::keeper
