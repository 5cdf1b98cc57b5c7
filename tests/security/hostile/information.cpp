#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

extern char** environ;

// What the workload can learn about the host without touching it.
namespace berth::hostile {

namespace {

constexpr const char* telling_files[] = {"cmdline",
                                         "config.gz",
                                         "kallsyms",
                                         "keys",
                                         "key-users",
                                         "timer_list",
                                         "sched_debug",
                                         "interrupts",
                                         "iomem",
                                         "ioports",
                                         "kcore",
                                         "kmsg",
                                         "kpagecount",
                                         "kpageflags",
                                         "kpagecgroup",
                                         "vmallocinfo",
                                         "slabinfo",
                                         "pagetypeinfo",
                                         "latency_stats",
                                         "acpi/wakeup",
                                         "scsi/scsi",
                                         "bus/pci/devices",
                                         "fs/ext4/vda/options",
                                         "mtrr",
                                         "sysrq-trigger",
                                         "driver/rtc",
                                         "partitions",
                                         "diskstats",
                                         "modules",
                                         "irq/default_smp_affinity",
                                         "pressure/cpu",
                                         "pressure/memory",
                                         "zoneinfo",
                                         "buddyinfo",
                                         "vmstat",
                                         "softirqs",
                                         "consoles",
                                         "misc",
                                         "cgroups"};

Verdict read_proc(const Bait&) {
  std::string read;
  for (const char* name : telling_files) {
    const std::string contents = contents_of(std::string{"/proc/"} + name);
    // A masked file reads as empty.
    if (!contents.empty()) read += std::string{" "} + name;
  }
  return read.empty() ? denied(ENOENT) : open_to("read" + read);
}

Verdict read_sys(const Bait&) {
  std::string read;
  for (const char* name : {"firmware", "kernel/debug", "kernel/security", "kernel/tracing",
                           "fs/cgroup", "devices/virtual/dmi", "class/net", "block", "module",
                           "kernel/notes", "kernel/slab", "power/state", "hypervisor"}) {
    const std::string path = std::string{"/sys/"} + name;
    if (::access(path.c_str(), R_OK) == 0) read += " " + path;
  }
  return read.empty() ? denied(ENOENT) : open_to("found" + read);
}

Verdict find_descriptors(const Bait&) {
  std::string found;
  for (int number = 3; number < 1024; ++number) {
    if (::fcntl(number, F_GETFD) < 0) continue;
    char target[256] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(number);
    const ssize_t size = ::readlink(link.c_str(), target, sizeof target - 1);
    found += " " + std::to_string(number) + (size > 0 ? std::string{"="} + target : "");
  }
  return found.empty() ? denied(EBADF) : open_to("inherited" + found);
}

Verdict read_own_environment(const Bait& bait) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view{*entry}.contains(bait.marker)) return open_to("has the secret");
  }
  return denied(ENOENT);
}

Verdict read_other_environments(const Bait& bait) {
  int error = ESRCH;
  for (const pid_t pid : visible_processes()) {
    const std::string contents = contents_of("/proc/" + std::to_string(pid) + "/environ");
    if (contents.contains(bait.marker)) {
      return open_to("read the secret of process " + std::to_string(pid));
    }
    if (contents.empty() && errno != 0) error = errno;
  }
  return denied(error);
}

// Secrets in the memory that a forked process shares with its parent.
Verdict read_other_memory(const Bait& bait) {
  int error = ESRCH;
  for (const pid_t pid : visible_processes()) {
    // On the bare host, the host's other processes are not examined.
    if (pid != ::getppid() && pid != 1 && pid != bait.pid) continue;
    const std::string process = "/proc/" + std::to_string(pid);
    const std::string maps = contents_of(process + "/maps");
    const Descriptor memory{::open((process + "/mem").c_str(), O_RDONLY | O_CLOEXEC)};
    if (!memory) {
      error = errno;
      continue;
    }
    if (!maps.empty()) return open_to("may read the memory of process " + std::to_string(pid));
  }
  return denied(error);
}

constexpr Attempt attempts[] = {
    {"read_proc_of_host", read_proc},
    {"read_sys_of_host", read_sys},
    {"inherited_descriptors", find_descriptors},
    {"secret_in_own_environment", read_own_environment},
    {"secret_in_other_environments", read_other_environments},
    {"secret_in_other_memory", read_other_memory},
};

}  // namespace

std::span<const Attempt> information_attempts() {
  return attempts;
}

}  // namespace berth::hostile
