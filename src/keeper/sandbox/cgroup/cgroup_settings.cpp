#include "keeper/sandbox/cgroup/cgroup_settings.hpp"

#include "base/files.hpp"
#include "base/owned.hpp"
#include "keeper/sandbox/cgroup/cgroup_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace berth::keeper::sandbox {
namespace {

constexpr std::uint64_t cpu_period_us = 100'000;
constexpr std::uint64_t default_weight = 100;
constexpr std::uint64_t default_shares = 1024;
constexpr std::uint64_t shares_min = 2;
constexpr std::uint64_t weight_max = 10'000;
// The quota per period is at least a millisecond.
constexpr std::uint64_t cpu_millis_min = 10;
constexpr std::uint64_t memory_bytes_min = std::uint64_t{4} << 20;
constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 60;
// Socket buffers, as a fraction of the sandbox's memory.
constexpr std::uint64_t socket_part = 8;
constexpr std::uint64_t socket_bytes_min = std::uint64_t{4} << 20;
constexpr std::uint64_t socket_bytes_max = std::uint64_t{64} << 20;
// The sandbox's init, a warden, the command and one child of it.
constexpr std::uint64_t pids_min = 4;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::string_view swap_file_v2 = "memory.swap.max";
constexpr std::string_view swap_file_v1 = "memory.memsw.limit_in_bytes";

std::string text_of(std::uint64_t number) {
  return std::to_string(number);
}

// v1's swap limit covers memory and swap together. It must not be below the memory limit, which is
// set first.
void add_memory(const Limits& limits, std::vector<Setting>& settings) {
  settings.push_back({.limit = "memory limit of " + text_of(limits.memory_bytes) + " bytes",
                      .controller = Controller::memory,
                      .unified = {"memory.max", text_of(limits.memory_bytes)},
                      .legacy = {"memory.limit_in_bytes", text_of(limits.memory_bytes)}});
  settings.push_back({.limit = "swap limit of " + text_of(limits.swap_bytes) + " bytes",
                      .controller = Controller::memory,
                      .unified = {swap_file_v2, text_of(limits.swap_bytes)},
                      .legacy = {swap_file_v1, text_of(limits.memory_bytes + limits.swap_bytes)}});
  // v2 counts TCP and UDP buffers as memory; v1 does not, so they need their own limit.
  const std::uint64_t socket_bytes =
      std::clamp(limits.memory_bytes / socket_part, socket_bytes_min, socket_bytes_max);
  settings.push_back({.limit = "socket memory limit of " + text_of(socket_bytes) + " bytes",
                      .controller = Controller::memory,
                      .legacy = {"memory.kmem.tcp.limit_in_bytes", text_of(socket_bytes)}});
}

void add_pids(const Limits& limits, std::vector<Setting>& settings) {
  const std::string pids = text_of(limits.pids);
  settings.push_back({.limit = "limit of " + pids + " processes",
                      .controller = Controller::pids,
                      .unified = {"pids.max", pids},
                      .legacy = {"pids.max", pids}});
}

void add_quota(const Limits& limits, std::vector<Setting>& settings) {
  const std::string quota_us = text_of(std::uint64_t{limits.cpu_millis} * (cpu_period_us / 1000));
  settings.push_back({.limit = "CPU limit of " + text_of(limits.cpu_millis) + " thousandths",
                      .controller = Controller::cpu,
                      .unified = {"cpu.max", quota_us + " " + text_of(cpu_period_us)},
                      .legacy = {"cpu.cfs_quota_us", quota_us}});
}

void add_weight(const Limits& limits, std::vector<Setting>& settings) {
  const std::uint64_t weight = limits.cpu_weight;
  const std::uint64_t shares = std::max(shares_min, weight * default_shares / default_weight);
  settings.push_back({.limit = "CPU weight of " + text_of(weight),
                      .controller = Controller::cpu,
                      .unified = {"cpu.weight", text_of(weight)},
                      .legacy = {"cpu.shares", text_of(shares)}});
}

bool is_in_force(std::string_view wanted, std::string_view shown) {
  const auto want = number_in(wanted);
  const auto got = number_in(shown);
  // "max" and -1 mean no limit, which always satisfies the request.
  if (!want) return true;
  if (!got) return false;
  return *got == *want || (*got < *want && *want - *got < page_bytes && *got % page_bytes == 0);
}

// Without swap space nothing can be swapped.
bool is_swap_free() {
  const std::string swaps = read_group_file("/proc/swaps");
  return swaps.find('\n') + 1 >= swaps.size();
}

std::unexpected<Error> wrong(std::string message, std::string remedy) {
  return fail(Errc::validation_failed, "limits: " + std::move(message), std::move(remedy));
}

}  // namespace

Result<> check(const Limits& limits) {
  if (limits.swap_bytes > 0 && limits.memory_bytes == 0) {
    return wrong("swap is limited and memory is not", "set memory too, or neither");
  }
  if (limits.memory_bytes > 0 && limits.memory_bytes < memory_bytes_min) {
    return wrong(text_of(limits.memory_bytes) + " bytes of memory hold no process",
                 "grant at least " + text_of(memory_bytes_min));
  }
  if (limits.memory_bytes > memory_bytes_max || limits.swap_bytes > memory_bytes_max) {
    return wrong("more memory than any machine has", "leave the limit out");
  }
  if (limits.pids > 0 && limits.pids < pids_min) {
    return wrong(text_of(limits.pids) + " processes are too few to run a command",
                 "grant at least " + text_of(pids_min));
  }
  if (limits.cpu_millis > 0 && limits.cpu_millis < cpu_millis_min) {
    return wrong(text_of(limits.cpu_millis) + " thousandths of a CPU are less than Linux measures",
                 "grant at least " + text_of(cpu_millis_min));
  }
  if (limits.cpu_weight > weight_max) {
    return wrong("a CPU weight of " + text_of(limits.cpu_weight) + " is out of range",
                 "weights are 1 to " + text_of(weight_max));
  }
  return {};
}

std::vector<Setting> settings_of(const Limits& limits) {
  std::vector<Setting> settings;
  if (limits.memory_bytes > 0) add_memory(limits, settings);
  if (limits.pids > 0) add_pids(limits, settings);
  if (limits.cpu_millis > 0) add_quota(limits, settings);
  if (limits.cpu_weight > 0) add_weight(limits, settings);
  return settings;
}

std::string set_and_verify(const std::string& folder, const Knob& knob) {
  const std::string path = folder + "/" + std::string{knob.file};
  const auto because = [&](const char* action) {
    return io_failure(action, path, errno).error().message;
  };
  const Fd file{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  if (!file) {
    const bool about_swap = knob.file == swap_file_v1 || knob.file == swap_file_v2;
    const std::string why = because("open");
    return about_swap && is_swap_free() ? "" : why;
  }
  if (::write(file.get(), knob.value.data(), knob.value.size()) < 0) return because("write");
  std::array<char, 64> shown{};
  const ssize_t size = ::pread(file.get(), shown.data(), shown.size(), 0);
  if (size < 0) return because("read");
  const std::string_view text{shown.data(), static_cast<std::size_t>(size)};
  if (is_in_force(knob.value, text)) return {};
  return path + " shows " + std::string{text.substr(0, text.find('\n'))} + " and not " + knob.value;
}

}  // namespace berth::keeper::sandbox
