#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/magic.h>

#include <cerrno>
#include <cstring>

// New user namespaces grant capabilities over new kernel surface; old ones lead back to the host.
namespace berth::hostile {

namespace {

Verdict unshare_user(const Bait&) {
  return in_child([] {
    const std::uint64_t before = namespace_of("user");
    if (::unshare(CLONE_NEWUSER) != 0) return denied();
    if (namespace_of("user") == before) return limited("unshare did nothing");
    return open_to("made a user namespace");
  });
}

// Whether a process with these flags really started.
Verdict cloned(long pid) {
  if (pid < 0) return denied();
  if (pid == 0) ::_exit(0);
  int status = 0;
  ::waitpid(static_cast<pid_t>(pid), &status, __WALL);
  return open_to("made a process in a user namespace");
}

Verdict clone3_user(const Bait&) {
  clone_args args = {};
  args.flags = CLONE_NEWUSER;
  args.exit_signal = SIGCHLD;
  return cloned(::syscall(SYS_clone3, &args, sizeof args));
}

Verdict clone_user(const Bait&) {
  return cloned(::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, 0));
}

Verdict user_and_mount(const Bait&) {
  return in_child([] {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return denied();
    if (::mount("none", "/proc", "tmpfs", 0, nullptr) != 0) return denied();
    struct statfs found = {};
    if (::statfs("/proc", &found) != 0 || found.f_type != TMPFS_MAGIC) {
      return limited("the mount is not there");
    }
    return open_to("mounted a tmpfs in a user namespace");
  });
}

Verdict user_and_network(const Bait&) {
  return in_child([] {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return denied();
    const Descriptor socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    ifreq request = {};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return denied();
    return open_to("configured a network namespace");
  });
}

// Any other kind of namespace, each alone: one of them suffices.
Verdict unshare_others(const Bait&) {
  const int kinds[] = {CLONE_NEWNS,  CLONE_NEWNET,    CLONE_NEWPID, CLONE_NEWIPC,
                       CLONE_NEWUTS, CLONE_NEWCGROUP, CLONE_NEWTIME};
  for (const int kind : kinds) {
    const Verdict verdict = in_child([kind] {
      if (::unshare(kind) != 0) return denied();
      return open_to("made a namespace of kind " + std::to_string(kind));
    });
    if (verdict.outcome != Outcome::denied) return verdict;
    if (kind == CLONE_NEWTIME) return verdict;
  }
  return denied(EPERM);
}

// Through every visible process. The attempt succeeds if the host's file is visible then.
Verdict join_mount(const Bait& bait) {
  Verdict last = denied(ENOENT);
  for (const pid_t pid : visible_processes()) {
    if (pid != 1 && pid != bait.pid) continue;
    last = in_child([&] {
      const std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
      const Descriptor target{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
      if (!target || ::setns(target.get(), CLONE_NEWNS) != 0) return denied();
      return reading(bait.file, bait.marker);
    });
    if (last.outcome != Outcome::denied) return last;
  }
  return last;
}

constexpr Attempt attempts[] = {
    {"unshare_userns", unshare_user},
    {"clone3_userns", clone3_user},
    {"clone_userns", clone_user},
    {"userns_and_mount", user_and_mount},
    {"userns_and_network", user_and_network},
    {"unshare_other_namespaces", unshare_others},
    {"setns_host_mounts", join_mount},
};

}  // namespace

std::span<const Attempt> namespace_attempts() {
  return attempts;
}

}  // namespace berth::hostile
