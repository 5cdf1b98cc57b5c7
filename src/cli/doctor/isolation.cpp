#include "base/files.hpp"
#include "cli/doctor/check.hpp"
#include "cli/doctor/facts.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace berth::cli::doctor {
namespace {

constexpr std::size_t setting_bytes_max = 1 << 20;

// Tries something in a child process, so that no effect remains. The child's exit code is 0 or an
// errno; it may only do what is safe after fork.
int tried(int (*attempt)(uid_t user, gid_t group)) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) ::_exit(attempt(user, group));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

bool put(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool done = ::write(fd, text, static_cast<std::size_t>(size)) == size;
  ::close(fd);
  return done;
}

int enter_user_namespace(uid_t user, gid_t group) {
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return errno;
  char map[64];
  put("/proc/self/setgroups", "deny");
  std::snprintf(map, sizeof map, "0 %u 1", user);
  if (!put("/proc/self/uid_map", map)) return errno;
  std::snprintf(map, sizeof map, "0 %u 1", group);
  return put("/proc/self/gid_map", map) ? 0 : errno;
}

// On an in-memory file system that only this child sees; it is removed with the child.
int mount_overlay(uid_t user, gid_t group) {
  if (const int failed = enter_user_namespace(user, group); failed != 0) return failed;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno;
  if (::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) return errno;
  for (const char* name : {"/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/all"}) {
    if (::mkdir(name, 0700) != 0) return errno;
  }
  const char* options = "lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr";
  return ::mount("overlay", "/tmp/all", "overlay", 0, options) == 0 ? 0 : errno;
}

std::string refusal_reason(int error_number) {
  return io_failure("try", "it", error_number).error().message.substr(std::strlen("try it: "));
}

std::string setting(const char* path) {
  std::string text = read_file(path, setting_bytes_max).value_or("");
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

Finding check_user_namespaces() {
  const int failed = tried(enter_user_namespace);
  if (failed == 0) return {"user namespaces", Verdict::ok, "a sandbox can have its own users"};
  const std::string says = "a user namespace cannot be made: " + refusal_reason(failed);
  const keeper::sandbox::Prohibition why = keeper::sandbox::why_no_user_namespaces();
  return {"user namespaces", Verdict::warn, says + " (" + why.reason + ")", why.remedy};
}

Finding check_overlayfs() {
  const int failed = tried(mount_overlay);
  if (failed == 0) {
    return {"overlayfs", Verdict::ok, "a sandbox can start from a shared root without a copy"};
  }
  return {"overlayfs", Verdict::warn,
          "overlayfs cannot be mounted in a user namespace: " + refusal_reason(failed) +
              "; sandboxes copy their root",
          failed == ENODEV ? "modprobe overlay" : "mend the user namespaces first"};
}

Finding check_cgroups(const keeper::sandbox::CgroupLayout& layout, Cgroups mounted) {
  using keeper::sandbox::Controller;
  if (mounted == Cgroups::none) {
    return {"cgroups", Verdict::warn, "no cgroup hierarchy is mounted: no limits on sandboxes",
            layout.remedy};
  }
  std::string ours;
  std::string others;
  for (const Controller one : {Controller::memory, Controller::cpu, Controller::pids}) {
    std::string& list = layout.has(one) ? ours : others;
    list += (list.empty() ? "" : ", ") + std::string{name_of(one)};
  }
  const std::string version = mounted == Cgroups::v2   ? "v2"
                              : mounted == Cgroups::v1 ? "v1"
                                                       : "v1 and v2";
  if (others.empty()) return {"cgroups", Verdict::ok, version + ", ours to divide: " + ours};
  return {"cgroups", Verdict::warn,
          version + ", but not ours to divide: " + others + "; sandboxes go without these limits",
          layout.remedy};
}

// As a sandbox's keeper sees them.
Finding check_cgroups() {
  const std::string mounts = read_file("/proc/self/mounts", setting_bytes_max).value_or("");
  return check_cgroups(keeper::sandbox::detect_layout(), cgroups_in(mounts));
}

Finding check_landlock() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi >= 1) return {"landlock", Verdict::ok, "ABI " + std::to_string(abi)};
  return {"landlock", Verdict::warn,
          "not available: " + refusal_reason(errno) + "; one layer fewer around sandboxes",
          "boot with lsm=landlock,... (kernel 5.13 or newer)"};
}

Finding check_seccomp() {
  const std::string actions = setting("/proc/sys/kernel/seccomp/actions_avail");
  if (::prctl(PR_GET_SECCOMP) < 0) {
    return {"seccomp", Verdict::fail, "the kernel has no seccomp: sandboxes cannot be made",
            "use a kernel with CONFIG_SECCOMP_FILTER"};
  }
  if (actions.empty()) return {"seccomp", Verdict::ok, "available"};
  return {"seccomp", Verdict::ok, "available: " + actions};
}

Finding check_kvm() {
  if (::access("/dev/kvm", R_OK | W_OK) == 0) return {"kvm", Verdict::note, "/dev/kvm is usable"};
  return {"kvm", Verdict::note, "/dev/kvm: " + refusal_reason(errno) + "; Berth does not need it"};
}

}  // namespace berth::cli::doctor
