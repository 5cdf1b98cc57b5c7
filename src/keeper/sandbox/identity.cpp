#include "keeper/sandbox/identity.hpp"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace berth::keeper::sandbox {
namespace {

constexpr std::uint64_t bit(unsigned capability) {
  return std::uint64_t{1} << capability;
}

// What package programs expect of root, limited to the sandbox's own files and processes: no
// devices, mounts, interfaces, raw sockets, tracing or time.
constexpr std::uint64_t of_root = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) |
                                  bit(CAP_FSETID) | bit(CAP_KILL) | bit(CAP_SETGID) |
                                  bit(CAP_SETUID) | bit(CAP_NET_BIND_SERVICE) | bit(CAP_SETFCAP);

constexpr unsigned capabilities_max = 63;

int set_capabilities(std::uint64_t kept) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> sets{};
  for (std::size_t word = 0; word < sets.size(); ++word) {
    const auto part = static_cast<std::uint32_t>(kept >> (32 * word));
    sets[word] = {.effective = part, .permitted = part, .inheritable = 0};
  }
  return ::syscall(SYS_capset, &header, sets.data()) == 0 ? 0 : errno;
}

}  // namespace

int bound(int resource, std::uint64_t most) {
  rlimit limit{.rlim_cur = most, .rlim_max = most};
  if (::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) == 0) return 0;
  if (errno != EPERM) return errno;
  // A process that may not raise the limit has a lower one, which is at least as strict.
  if (::syscall(SYS_prlimit64, 0, resource, nullptr, &limit) != 0) return errno;
  limit.rlim_cur = limit.rlim_max;
  return ::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) == 0 ? 0 : errno;
}

int set_rlimits(const Plan& plan, SetupReport& report) {
  // The kernel would write a core file outside every limit but this one.
  if (const int error_number = bound(RLIMIT_CORE, 0); error_number != 0) return error_number;
  // The kernel counts this for the sandbox's ids alone. Without a control group it is the only
  // protection against a fork bomb; with one it is redundant.
  if (plan.limits.pids != 0) {
    const int error_number = bound(RLIMIT_NPROC, plan.limits.pids);
    if (error_number != 0) return error_number;
  }
  for (report.item = 0; report.item < plan.rlimits.size(); ++report.item) {
    const Rlimit& wanted = plan.rlimits[report.item];
    const rlimit limit{.rlim_cur = wanted.soft, .rlim_max = wanted.hard};
    if (::syscall(SYS_prlimit64, 0, wanted.resource, &limit, nullptr) != 0) return errno;
    if (wanted.resource == RLIMIT_NOFILE) report.open_files = limit;
  }
  return 0;
}

// The C library's functions would signal its other threads, which a child of clone3 does not have.
int become(const User& user) {
  // If setting groups was denied, no group could have been added.
  const bool denied_is_fine = user.groups.empty();
  if (::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) != 0 &&
      !(errno == EPERM && denied_is_fine)) {
    return errno;
  }
  if (::syscall(SYS_setresgid, user.gid, user.gid, user.gid) != 0) return errno;
  return ::syscall(SYS_setresuid, user.uid, user.uid, user.uid) == 0 ? 0 : errno;
}

int drop_capabilities(Identity identity) {
  const std::uint64_t kept = identity == Identity::root ? of_root : 0;
  for (unsigned capability = 0; capability <= capabilities_max; ++capability) {
    if ((kept & bit(capability)) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) break;  // past the last one of this kernel
    return errno;
  }
  if (identity == Identity::user) {
    // Even uid 0, should a process get it, is an ordinary user.
    constexpr unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
                                     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
                                     SECBIT_NO_CAP_AMBIENT_RAISE |
                                     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
    if (::prctl(PR_SET_SECUREBITS, locked) != 0) return errno;
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
    return errno;
  }
  return set_capabilities(kept);
}

int forbid_new_privileges() {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : errno;
}

int make_files_as(uid_t user) {
  // Otherwise the kernel drops the rights over files together with uid 0.
  if (::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) != 0) return errno;
  ::syscall(SYS_setfsgid, user);
  ::syscall(SYS_setfsuid, user);
  return 0;
}

}  // namespace berth::keeper::sandbox
