#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <asm/termbits.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <set>

// Device nodes, terminals, and the writable files of /proc and /sys.
namespace berth::hostile {

namespace {

Verdict make_disk(const Bait& bait) {
  unsigned major = 0;
  unsigned minor = 0;
  if (std::sscanf(bait.device.c_str(), "%u:%u", &major, &minor) != 2) return denied(ENODEV);
  const Scratch scratch;
  const std::string node = scratch.file("disk");
  if (::mknod(node.c_str(), S_IFBLK | 0600, makedev(major, minor)) != 0) return denied();
  const Descriptor disk{::open(node.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!disk) return denied();
  char bytes[512] = {};
  return ::read(disk.get(), bytes, sizeof bytes) > 0 ? open_to("read the host's disk") : denied();
}

Verdict make_memory_device(const Bait&) {
  const Scratch scratch;
  const std::string node = scratch.file("kmsg");
  if (::mknod(node.c_str(), S_IFCHR | 0600, makedev(1, 11)) != 0) return denied();
  const Descriptor log{::open(node.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  return log ? open_to("opened a device that it made") : denied();
}

// Nodes that can be opened without an effect on the machine.
constexpr const char* quiet_nodes[] = {"mem",
                                       "kmem",
                                       "port",
                                       "kmsg",
                                       "kvm",
                                       "fuse",
                                       "loop-control",
                                       "net/tun",
                                       "mapper/control",
                                       "vsock",
                                       "userfaultfd",
                                       "vhost-net",
                                       "vhost-vsock",
                                       "btrfs-control",

                                       "hwrng",
                                       "cpu_dma_latency",
                                       "tty0",
                                       "tty1",
                                       "nvram",
                                       "rtc0",
                                       "uinput",
                                       "autofs"};

Verdict open_devices(const Bait&) {
  std::string opened;
  for (const char* name : quiet_nodes) {
    const std::string path = std::string{"/dev/"} + name;
    const Descriptor device{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
    if (device) opened += " " + path;
  }
  return opened.empty() ? denied(ENOENT) : open_to("opened" + opened);
}

// An existing node may be opened one day, by another name or another permission.
Verdict find_devices(const Bait&) {
  const std::set<std::string> usual = {"null", "zero",  "full",   "random", "urandom", "tty",
                                       "ptmx", "stdin", "stdout", "stderr", "fd",      "console"};
  DIR* folder = ::opendir("/dev");
  if (folder == nullptr) return denied();
  std::string found;
  while (const dirent* entry = ::readdir(folder)) {
    struct stat node = {};
    if (::fstatat(::dirfd(folder), entry->d_name, &node, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISBLK(node.st_mode) && !S_ISCHR(node.st_mode)) continue;
    if (!usual.contains(entry->d_name)) found += std::string{" "} + entry->d_name;
  }
  ::closedir(folder);
  return found.empty() ? denied(ENOENT) : open_to("found" + found);
}

Verdict open_host_terminal(const Bait& bait) {
  const Descriptor terminal{::open(bait.terminal.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC)};
  if (!terminal) return denied();
  struct stat here = {};
  ::fstat(terminal.get(), &here);
  // A sandbox's terminal may have the same number: it is the host's if it shows the marker.
  char bytes[256] = {};
  ::fcntl(terminal.get(), F_SETFL, O_NONBLOCK);
  const ssize_t got = ::read(terminal.get(), bytes, sizeof bytes - 1);
  if (got <= 0 || !std::string{bytes}.contains(bait.marker)) return denied(ENOENT);
  return open_to("read the host's terminal");
}

// Text that is put into the terminal's input runs in the next shell that reads there.
Verdict type_into(int terminal) {
  char letter = 'x';
  if (::ioctl(terminal, TIOCSTI, &letter) != 0) return denied();
  int waiting = 0;
  ::ioctl(terminal, FIONREAD, &waiting);
  return open_to("typed into its terminal");
}

Verdict type_into_controlling_terminal(const Bait&) {
  const Descriptor terminal{::open("/dev/tty", O_RDWR | O_CLOEXEC)};
  if (!terminal) return denied();
  return type_into(terminal.get());
}

Verdict with_own_terminal(Verdict (*deed)(int terminal)) {
  return in_child([deed] {
    ::setsid();
    ::signal(SIGHUP, SIG_IGN);  // comes when the terminal ends, before the verdict is printed
    const Descriptor master{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    if (!master || ::grantpt(master.get()) != 0 || ::unlockpt(master.get()) != 0) return denied();
    char name[64] = {};
    if (::ptsname_r(master.get(), name, sizeof name) != 0) return denied();
    const Descriptor terminal{::open(name, O_RDWR | O_CLOEXEC)};
    return terminal ? deed(terminal.get()) : denied();
  });
}

Verdict type_into_own_terminal(const Bait&) {
  return with_own_terminal(type_into);
}

// To the current one. Others are modules, which the kernel loads on request.
Verdict set_line_discipline(const Bait&) {
  return with_own_terminal([](int terminal) {
    int discipline = 0;
    return ::ioctl(terminal, TIOCSETD, &discipline) == 0 ? open_to("chose a line discipline")
                                                         : denied();
  });
}

Verdict paste_from_console(const Bait&) {
  char request = 3;  // paste the selection
  if (::ioctl(STDIN_FILENO, TIOCLINUX, &request) == 0) return open_to("pasted into its terminal");
  // Without a filter, a device that is not a console has no such request.
  return errno == ENOTTY || errno == EINVAL ? open_to("was let through to TIOCLINUX") : denied();
}

Verdict write_core_pattern(const Bait&) {
  return opens_for_writing("/proc/sys/kernel/core_pattern")
             ? open_to("may set the host's core handler")
             : denied();
}

// The first error, unless one of them opens.
Verdict write_any(std::initializer_list<const char*> paths) {
  int error = 0;
  for (const char* path : paths) {
    if (opens_for_writing(path)) return open_to(std::string{"may write "} + path);
    if (error == 0 || error == ENOENT) error = errno;
  }
  return denied(error);
}

Verdict write_proc(const Bait&) {
  return write_any(
      {"/proc/sys/kernel/modprobe", "/proc/sys/kernel/sysrq", "/proc/sys/kernel/randomize_va_space",
       "/proc/sys/kernel/hostname", "/proc/sys/kernel/domainname", "/proc/sys/kernel/ns_last_pid",
       "/proc/sys/vm/drop_caches", "/proc/sys/vm/overcommit_memory",
       "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger",
       "/proc/irq/default_smp_affinity", "/proc/mtrr", "/proc/timer_list", "/proc/acpi/wakeup"});
}

Verdict write_sys(const Bait&) {
  return write_any({"/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled",
                    "/sys/kernel/mm/ksm/run", "/sys/kernel/profiling", "/sys/power/state",
                    "/sys/devices/system/cpu/cpu1/online",
                    "/sys/module/firmware_class/parameters/path", "/sys/block/vda/queue/scheduler",
                    "/sys/kernel/debug/sched/features", "/sys/kernel/security/apparmor/.load",
                    "/sys/class/net/lo/mtu"});
}

const char* const groups[] = {"",         "/unified", "/memory",  "/pids",  "/cpu",
                              "/systemd", "/freezer", "/devices", "/cpuset"};

// Its own pid, so that only this process moves.
Verdict leave_cgroup(const Bait&) {
  int error = ENOENT;
  for (const char* group : groups) {
    const std::string path = std::string{"/sys/fs/cgroup"} + group + "/cgroup.procs";
    const Descriptor members{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (!members) {
      if (error == ENOENT) error = errno;
      continue;
    }
    if (::write(members.get(), "0", 1) == 1) return open_to("moved itself through " + path);
    error = errno;
  }
  return denied(error);
}

Verdict raise_limits(const Bait&) {
  int error = ENOENT;
  for (const char* group : groups) {
    for (const char* limit :
         {"memory.max", "memory.limit_in_bytes", "pids.max", "cpu.max", "cpu.cfs_quota_us",
          "cgroup.max.descendants", "cgroup.freeze", "devices.allow", "notify_on_release"}) {
      const std::string path = std::string{"/sys/fs/cgroup"} + group + "/" + limit;
      if (opens_for_writing(path)) return open_to("may write " + path);
      if (error == ENOENT) error = errno;
    }
  }
  return denied(error);
}

// The host runs a hierarchy's release agent as root, outside every sandbox.
Verdict set_release_agent(const Bait&) {
  if (opens_for_writing("/sys/fs/cgroup/memory/release_agent") ||
      opens_for_writing("/sys/fs/cgroup/systemd/release_agent")) {
    return open_to("may set a release agent");
  }
  const Scratch scratch;
  if (::mount("cgroup", scratch.path().c_str(), "cgroup", 0, "pids") != 0) return denied();
  const bool may_write = opens_for_writing(scratch.file("release_agent"));
  const int error = errno;
  ::umount2(scratch.path().c_str(), MNT_DETACH);
  return may_write ? open_to("mounted a hierarchy and may set its release agent") : denied(error);
}

constexpr Attempt attempts[] = {
    {"mknod_host_disk", make_disk},
    {"mknod_kernel_log", make_memory_device},
    {"open_device_nodes", open_devices},
    {"find_device_nodes", find_devices},
    {"open_host_terminal", open_host_terminal},
    {"tiocsti_controlling_terminal", type_into_controlling_terminal},
    {"tiocsti_own_terminal", type_into_own_terminal},
    {"tioclinux", paste_from_console},
    {"tiocsetd", set_line_discipline},
    {"write_core_pattern", write_core_pattern},
    {"write_proc_sys", write_proc},
    {"write_sys", write_sys},
    {"leave_cgroup", leave_cgroup},
    {"raise_cgroup_limits", raise_limits},
    {"release_agent", set_release_agent},
};

}  // namespace

std::span<const Attempt> device_attempts() {
  return attempts;
}

}  // namespace berth::hostile
