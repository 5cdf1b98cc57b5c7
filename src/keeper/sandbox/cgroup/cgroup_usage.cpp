#include "keeper/sandbox/cgroup/cgroup.hpp"

#include <unistd.h>

#include <algorithm>

namespace berth::keeper::sandbox {
namespace {

std::optional<std::uint64_t> times(std::optional<std::uint64_t> value, double factor) {
  if (!value) return value;
  return static_cast<std::uint64_t>(static_cast<double>(*value) * factor);
}

}  // namespace

CgroupUsage Cgroup::usage() const {
  CgroupUsage now;
  if (!unified_.empty()) {
    const std::string cpu = read_group_file(unified_ + "/cpu.stat");
    now.cpu_user_us = keyed_number(cpu, "user_usec");
    now.cpu_system_us = keyed_number(cpu, "system_usec");
  } else {
    const std::string cpu = read_group_file(file_of(Controller::cpuacct, "", "cpuacct.stat"));
    const double tick_us = 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
    now.cpu_user_us = times(keyed_number(cpu, "user"), tick_us);
    now.cpu_system_us = times(keyed_number(cpu, "system"), tick_us);
  }
  const std::string throttle = read_group_file(file_of(Controller::cpu, "cpu.stat", "cpu.stat"));
  now.throttled_us = is_unified(Controller::cpu)
                         ? keyed_number(throttle, "throttled_usec")
                         : times(keyed_number(throttle, "throttled_time"), 1e-3);  // nanoseconds
  now.memory_bytes =
      number_of(file_of(Controller::memory, "memory.current", "memory.usage_in_bytes"));
  now.memory_peak_bytes =
      number_of(file_of(Controller::memory, "memory.peak", "memory.max_usage_in_bytes"));
  // v1 counts socket buffers separately, and has no peak for the sum.
  const auto in_sockets =
      number_of(file_of(Controller::memory, "", "memory.kmem.tcp.usage_in_bytes"));
  if (now.memory_bytes && in_sockets) {
    *now.memory_bytes += *in_sockets;
    now.memory_peak_bytes = std::max(now.memory_peak_bytes, now.memory_bytes);
  }
  now.pids = number_of(file_of(Controller::pids, "pids.current", "pids.current"));
  now.pids_peak = number_of(file_of(Controller::pids, "pids.peak", "pids.peak"));
  const std::string io = read_group_file(file_of(Controller::io, "io.stat", legacy_io_file));
  if (is_unified(Controller::io)) {  // empty before the first I/O
    now.io_read_bytes = summed_number(io, "rbytes");
    now.io_written_bytes = summed_number(io, "wbytes");
  } else if (!io.empty()) {
    now.io_read_bytes = summed_lines(io, "Read");
    now.io_written_bytes = summed_lines(io, "Write");
  }
  now.oom_kills = oom_kills();
  return now;
}

std::uint64_t Cgroup::oom_kills() const {
  const std::string text =
      read_group_file(file_of(Controller::memory, "memory.events", "memory.oom_control"));
  return keyed_number(text, "oom_kill").value_or(0);
}

}  // namespace berth::keeper::sandbox
