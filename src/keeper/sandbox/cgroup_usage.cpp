#include "keeper/sandbox/cgroup.hpp"

#include <unistd.h>

#include <algorithm>

namespace berth::keeper::sandbox {
namespace {

std::optional<std::uint64_t> grown(const std::optional<std::uint64_t>& now,
                                   const std::optional<std::uint64_t>& before) {
  if (!now) return now;
  return *now - std::min(*now, before.value_or(0));
}

// A peak that the kernel does not reset is known only once the present tenant has passed it.
std::optional<std::uint64_t> own_peak(const std::optional<std::uint64_t>& now,
                                      const std::optional<std::uint64_t>& before) {
  if (now && before && *now <= *before) return std::nullopt;
  return now;
}

std::optional<std::uint64_t> times(std::optional<std::uint64_t> value, double factor) {
  if (!value) return value;
  return static_cast<std::uint64_t>(static_cast<double>(*value) * factor);
}

}  // namespace

CgroupUsage Cgroup::read_counters() const {
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
  now.pids = number_of(file_of(Controller::pids, "pids.current", "pids.current"));
  now.pids_peak = number_of(file_of(Controller::pids, "pids.peak", "pids.peak"));
  const std::string io = read_group_file(file_of(Controller::io, "io.stat", legacy_io_file));
  if (is_unified(Controller::io)) {  // empty before the first byte
    now.io_read_bytes = summed_number(io, "rbytes");
    now.io_written_bytes = summed_number(io, "wbytes");
  } else if (!io.empty()) {
    now.io_read_bytes = summed_lines(io, "Read");
    now.io_written_bytes = summed_lines(io, "Write");
  }
  const std::string oom =
      read_group_file(file_of(Controller::memory, "memory.events", "memory.oom_control"));
  now.oom_kills = keyed_number(oom, "oom_kill").value_or(0);
  return now;
}

CgroupUsage Cgroup::usage() const {
  CgroupUsage now = read_counters();
  now.cpu_user_us = grown(now.cpu_user_us, before_.cpu_user_us);
  now.cpu_system_us = grown(now.cpu_system_us, before_.cpu_system_us);
  now.throttled_us = grown(now.throttled_us, before_.throttled_us);
  now.memory_peak_bytes = own_peak(now.memory_peak_bytes, before_.memory_peak_bytes);
  now.pids_peak = own_peak(now.pids_peak, before_.pids_peak);
  now.io_read_bytes = grown(now.io_read_bytes, before_.io_read_bytes);
  now.io_written_bytes = grown(now.io_written_bytes, before_.io_written_bytes);
  now.oom_kills -= std::min(now.oom_kills, before_.oom_kills);
  return now;
}

std::uint64_t Cgroup::oom_kills() const {
  const std::string text =
      read_group_file(file_of(Controller::memory, "memory.events", "memory.oom_control"));
  const std::uint64_t now = keyed_number(text, "oom_kill").value_or(0);
  return now - std::min(now, before_.oom_kills);
}

}  // namespace berth::keeper::sandbox
