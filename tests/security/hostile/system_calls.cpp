#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/kcmp.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/userfaultfd.h>
#include <sys/fanotify.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

// Calls that a workload does not need. Their arguments make a permitted call harmless: a wrong
// magic number, a missing path, the current value.
namespace berth::hostile {

namespace {

template <class... Arguments>
Verdict call_for_descriptor(const char* deed, long number, Arguments... arguments) {
  const Descriptor made{static_cast<int>(::syscall(number, arguments...))};
  return made ? open_to(deed) : denied();
}

// After the permission check a harmless call fails with one of these.
template <class... Arguments>
Verdict call_past_permission(const char* deed, int harmless, long number, Arguments... arguments) {
  if (::syscall(number, arguments...) >= 0 || errno == harmless) return open_to(deed);
  return denied();
}

Verdict add_key(const Bait&) {
  const long key =
      ::syscall(SYS_add_key, "user", "berth-hostile", "x", 1, KEY_SPEC_PROCESS_KEYRING);
  return key >= 0 ? open_to("added a key") : denied();
}

Verdict search_keyring(const Bait&) {
  const long ring = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0);
  return ring >= 0 ? open_to("reached the keyring of its user") : denied();
}

Verdict make_bpf_map(const Bait&) {
  bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = 4;
  attributes.max_entries = 1;
  return call_for_descriptor("made a bpf map", SYS_bpf, BPF_MAP_CREATE, &attributes,
                             sizeof attributes);
}

Verdict open_perf(const Bait&) {
  perf_event_attr attributes = {};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_CPU_CLOCK;
  return call_for_descriptor("counts events of the kernel", SYS_perf_event_open, &attributes, 0, -1,
                             -1, 0);
}

Verdict set_up_ring(const Bait&) {
  io_uring_params parameters = {};
  return call_for_descriptor("made an io_uring", SYS_io_uring_setup, 4, &parameters);
}

Verdict handle_faults(const Bait&) {
  const Verdict whole = call_for_descriptor("handles page faults", SYS_userfaultfd, O_CLOEXEC);
  if (whole.outcome == Outcome::open) return whole;
  return call_for_descriptor("handles its page faults", SYS_userfaultfd,
                             O_CLOEXEC | UFFD_USER_MODE_ONLY);
}

Verdict load_module(const Bait&) {
  char image[16] = {};
  return call_past_permission("was let through to the module loader", ENOEXEC, SYS_init_module,
                              image, sizeof image, "");
}

Verdict load_module_file(const Bait&) {
  const Descriptor nothing{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  return call_past_permission("was let through to the module loader", EINVAL, SYS_finit_module,
                              nothing.get(), "", 0);
}

Verdict unload_module(const Bait&) {
  return call_past_permission("was let through to the module unloader", ENOENT, SYS_delete_module,
                              "no_such_module", O_NONBLOCK);
}

Verdict load_kernel(const Bait&) {
  // More segments than possible.
  return call_past_permission("was let through to kexec", EINVAL, SYS_kexec_load, 0, 1000000,
                              nullptr, 0);
}

Verdict reboot_wrongly(const Bait&) {
  return call_past_permission("was let through to reboot", EINVAL, SYS_reboot, 0, 0, 0, nullptr);
}

Verdict swap_on(const Bait&) {
  return call_past_permission("was let through to swapon", ENOENT, SYS_swapon, "/no/such/file", 0);
}

Verdict account(const Bait&) {
  return call_past_permission("was let through to acct", ENOENT, SYS_acct, "/no/such/file");
}

Verdict quota(const Bait&) {
  return call_past_permission("was let through to quotactl", ENOENT, SYS_quotactl, 0x80000200,
                              "/no/such/device", 0, nullptr);
}

Verdict port_access(const Bait&) {
  // Level 0 is the default; 3 opens all ports, until this process ends.
  if (::iopl(3) == 0) {
    ::iopl(0);
    return open_to("opened all ports of the machine");
  }
  const int error = errno;
  return ::ioperm(0x80, 1, 1) == 0 ? open_to("opened a port of the machine") : denied(error);
}

Verdict watch_files(const Bait&) {
  return call_for_descriptor("watches the files of a filesystem", SYS_fanotify_init,
                             FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
}

Verdict compare_processes(const Bait&) {
  return ::syscall(SYS_kcmp, ::getpid(), ::getppid(), KCMP_FILE, 0, 0) >= 0
             ? open_to("learned about addresses of the kernel")
             : denied();
}

Verdict read_kernel_log(const Bait&) {
  constexpr int read_all = 3;
  char bytes[256] = {};
  return ::syscall(SYS_syslog, read_all, bytes, sizeof bytes) > 0 ? open_to("read the kernel's log")
                                                                  : denied();
}

Verdict set_clock(const Bait&) {
  timex now = {};
  if (::adjtimex(&now) < 0) return denied();
  timex same = {};
  same.modes = ADJ_TICK;
  same.tick = now.tick;
  return ::adjtimex(&same) >= 0 ? open_to("may set the clock") : denied();
}

Verdict set_hostname(const Bait& bait) {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  if (::sethostname(name, std::strlen(name)) != 0) return denied();
  return namespace_of("uts") == bait.hostname_namespace ? open_to("set the host's name")
                                                        : limited("set its own name");
}

// The build machine's C library may be older than these numbers, which are the same on every
// architecture.
constexpr long memfd_secret_number = 447;
constexpr long list_mount_number = 458;
constexpr long lsm_list_modules_number = 461;
constexpr long open_tree_attr_number = 467;

Verdict open_tree_with_attributes(const Bait&) {
  // With attributes, or a copy, it needs a capability; without, it is open_tree under another
  // number.
  return call_for_descriptor("opened a tree of mounts", open_tree_attr_number, AT_FDCWD, "/",
                             OPEN_TREE_CLOEXEC, nullptr, 0);
}

// A number that no kernel uses yet: its future meaning was never reviewed.
Verdict call_the_future(const Bait&) {
  constexpr long unknown = 600;
  return ::syscall(unknown, 0, 0, 0, 0, 0, 0) >= 0 ? open_to("made an unknown call") : denied();
}

Verdict list_mounts(const Bait&) {
  struct {
    std::uint32_t size;
    std::uint32_t spare;
    std::uint64_t mount;
    std::uint64_t after;
    std::uint64_t mount_namespace;
  } request = {
      .size = 24, .spare = 0, .mount = ~std::uint64_t{0}, .after = 0, .mount_namespace = 0};
  std::uint64_t found[16] = {};
  return ::syscall(list_mount_number, &request, found, 16, 0) >= 0 ? open_to("listed mounts")
                                                                   : denied();
}

Verdict list_security_modules(const Bait&) {
  std::uint64_t found[32] = {};
  std::uint32_t size = sizeof found;
  return ::syscall(lsm_list_modules_number, found, &size, 0) >= 0
             ? open_to("learned which security modules the machine has")
             : denied();
}

Verdict modify_segments(const Bait&) {
#if defined(SYS_modify_ldt)
  char table[64] = {};
  constexpr int read_table = 0;
  return ::syscall(SYS_modify_ldt, read_table, table, sizeof table) >= 0
             ? open_to("reached the table of segments")
             : denied();
#else
  return denied(ENOSYS);
#endif
}

Verdict hide_memory(const Bait&) {
  return call_for_descriptor("took memory away from the kernel", memfd_secret_number, O_CLOEXEC);
}

Verdict enter_by_interrupt(const Bait&) {
#if defined(__x86_64__)
  long result = 20;  // getpid of the 32-bit table
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  if (result == ::getpid()) return open_to("used the 32-bit table of system calls");
  return denied(static_cast<int>(-result));
#else
  return denied(ENOSYS);
#endif
}

Verdict enter_x32(const Bait&) {
#if defined(__x86_64__)
  constexpr long x32 = 0x40000000;
  return ::syscall(x32 | SYS_getpid) == ::getpid() ? open_to("used the x32 table of system calls")
                                                   : denied();
#else
  return denied(ENOSYS);
#endif
}

Verdict fix_addresses(const Bait&) {
  if (::personality(ADDR_NO_RANDOMIZE) < 0) return denied();
  constexpr unsigned long ask = 0xffffffff;
  return (::personality(ask) & ADDR_NO_RANDOMIZE) != 0 ? open_to("switched randomisation off")
                                                       : limited("without effect");
}

constexpr Attempt attempts[] = {
    {"add_key", add_key},
    {"user_keyring", search_keyring},
    {"bpf_map_create", make_bpf_map},
    {"perf_event_open", open_perf},
    {"io_uring_setup", set_up_ring},
    {"userfaultfd", handle_faults},
    {"init_module", load_module},
    {"finit_module", load_module_file},
    {"delete_module", unload_module},
    {"kexec_load", load_kernel},
    {"reboot", reboot_wrongly},
    {"swapon", swap_on},
    {"acct", account},
    {"quotactl", quota},
    {"io_ports", port_access},
    {"fanotify_init", watch_files},
    {"kcmp", compare_processes},
    {"kernel_log", read_kernel_log},
    {"set_clock", set_clock},
    {"sethostname", set_hostname},
    {"int80_system_call", enter_by_interrupt},
    {"x32_system_call", enter_x32},
    {"personality_no_randomize", fix_addresses},
    {"open_tree_attr", open_tree_with_attributes},
    {"unknown_system_call", call_the_future},
    {"list_mounts", list_mounts},
    {"list_security_modules", list_security_modules},
    {"modify_ldt", modify_segments},
    {"memfd_secret", hide_memory},
};

}  // namespace

std::span<const Attempt> system_call_attempts() {
  return attempts;
}

}  // namespace berth::hostile
