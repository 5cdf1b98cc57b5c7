#include "keeper/sandbox/namespaces.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace berth::keeper::sandbox {
namespace {

std::string line_of(const IdMap& map) {
  return std::to_string(map.inside) + " " + std::to_string(map.outside) + " " +
         std::to_string(map.count);
}

int idempotent_write(const std::string& path, std::string_view text) {
  const Fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// A namespace needs a process to create it. That process does nothing and shares our memory: a copy
// would cost more than the namespace. Such processes can share one stack, because all of them only
// wait here.
int wait_to_be_killed(void* /*nothing*/) {
  while (true) ::pause();
}

pid_t start_in_user_namespace() {
  alignas(16) static std::array<char, 4096> stack;
  return ::clone(wait_to_be_killed, stack.data() + stack.size(), CLONE_NEWUSER | CLONE_VM | SIGCHLD,
                 nullptr);
}

}  // namespace

NewProcess fork_into(std::uint64_t namespaces, int cgroup_directory) {
  int handle = -1;
  clone_args wanted{};
  wanted.flags = namespaces | CLONE_PIDFD;
  wanted.pidfd = reinterpret_cast<std::uint64_t>(&handle);
  wanted.exit_signal = SIGCHLD;
  if (cgroup_directory >= 0) {
    wanted.flags |= CLONE_INTO_CGROUP;
    wanted.cgroup = static_cast<std::uint64_t>(cgroup_directory);
  }
  const long pid = ::syscall(SYS_clone3, &wanted, sizeof wanted);
  if (pid < 0) return {.pid = -errno, .handle = {}};
  return {.pid = static_cast<pid_t>(pid), .handle = Fd{pid > 0 ? handle : -1}};
}

Result<UserNamespace> UserNamespace::make(const IdMap& users, const IdMap& groups) {
  UserNamespace made;
  made.maker_ = start_in_user_namespace();
  if (made.maker_ < 0) {
    made.maker_ = 0;
    return fail(Errc::sandbox_unavailable,
                io_failure("clone", "a user namespace", errno).error().message);
  }
  const std::string process = "/proc/" + std::to_string(made.maker_);
  int error_number = idempotent_write(process + "/uid_map", line_of(users));
  if (error_number == 0) error_number = idempotent_write(process + "/gid_map", line_of(groups));
  if (error_number == 0) {
    made.handle_ = Fd{::open((process + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC)};
    if (!made.handle_) error_number = errno;
  }
  // Reaped later, when it has had time to end.
  ::kill(made.maker_, SIGKILL);
  if (error_number != 0) return io_failure("map ids of", "a user namespace", error_number);
  return made;
}

UserNamespace::~UserNamespace() {
  if (maker_ > 0) ::waitpid(maker_, nullptr, 0);
}

int map_own_id(const IdMap& users, const IdMap& groups) {
  // Otherwise an ordinary user may not map a group: it could drop a group that denies access.
  if (const int error_number = idempotent_write("/proc/self/setgroups", "deny");
      error_number != 0) {
    return error_number;
  }
  if (const int error_number = idempotent_write("/proc/self/uid_map", line_of(users))) {
    return error_number;
  }
  return idempotent_write("/proc/self/gid_map", line_of(groups));
}

int bring_up_loopback() {
  const Fd socket{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket) return errno;
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", sizeof "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0 ? 0 : errno;
}

int own_mounts() {
  return ::unshare(CLONE_NEWNS) == 0 ? 0 : errno;
}

int set_hostname(const std::string& name) {
  return ::sethostname(name.data(), name.size()) == 0 ? 0 : errno;
}

}  // namespace berth::keeper::sandbox
