#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>

// The sandbox's own first process is the only one inside that knows the way out.
namespace berth::hostile {

namespace {

Verdict trace(const Bait&) {
  if (::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr) != 0) return denied();
  ::ptrace(PTRACE_INTERRUPT, 1, nullptr, nullptr);
  ::waitpid(1, nullptr, __WALL);
  ::ptrace(PTRACE_DETACH, 1, nullptr, nullptr);
  return open_to("traced pid 1");
}

// The address of pid 1's program, as far as its maps can be read; otherwise a usual address.
std::uintptr_t some_address_of_init() {
  const std::string maps = contents_of("/proc/1/maps");
  return maps.empty() ? 0x400000 : std::stoull(maps, nullptr, 16);
}

Verdict read_memory(const Bait&) {
  char bytes[64] = {};
  const iovec here = {.iov_base = bytes, .iov_len = sizeof bytes};
  const iovec there = {.iov_base = reinterpret_cast<void*>(some_address_of_init()),
                       .iov_len = sizeof bytes};
  return ::process_vm_readv(1, &here, 1, &there, 1, 0) > 0 ? open_to("read memory of pid 1")
                                                           : denied();
}

Verdict read_memory_file(const Bait&) {
  const Descriptor memory{::open("/proc/1/mem", O_RDONLY | O_CLOEXEC)};
  if (!memory) return denied();
  char bytes[64] = {};
  const auto at = static_cast<off_t>(some_address_of_init());
  return ::pread(memory.get(), bytes, sizeof bytes, at) > 0 ? open_to("read memory of pid 1")
                                                            : denied();
}

Verdict read_environment(const Bait&) {
  const Descriptor file{::open("/proc/1/environ", O_RDONLY | O_CLOEXEC)};
  if (!file) return denied();
  char bytes[64] = {};
  const ssize_t got = ::read(file.get(), bytes, sizeof bytes);
  if (got < 0) return denied();
  return got > 0 ? open_to("read the environment of pid 1") : limited("it is empty");
}

Verdict list_descriptors(const Bait&) {
  DIR* folder = ::opendir("/proc/1/fd");
  if (folder == nullptr) return denied();
  int found = 0;
  while (const dirent* entry = ::readdir(folder)) found += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return found > 0 ? open_to("sees " + std::to_string(found) + " descriptors of pid 1")
                   : limited("it shows none");
}

Verdict take_descriptor(const Bait&) {
  const Descriptor process{static_cast<int>(::syscall(SYS_pidfd_open, 1, 0))};
  if (!process) return denied();
  for (int number = 0; number < 64; ++number) {
    const Descriptor taken{static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0))};
    if (taken) return open_to("took descriptor " + std::to_string(number) + " of pid 1");
    if (errno != EBADF) return denied();
  }
  return denied();
}

// The letter of /proc/1/stat after the name.
char state_of_init() {
  const std::string stat = contents_of("/proc/1/stat");
  const std::size_t at = stat.rfind(") ");
  return at != std::string::npos ? stat[at + 2] : '?';
}

// Not permitted, or permitted and without effect: the kernel protects a namespace's pid 1 from
// both.
Verdict signal_init(int number) {
  if (::kill(1, number) != 0) return denied();
  for (int looks = 0; looks < 1000; ++looks) {
    const char state = state_of_init();
    if (state == 'T' || state == 'Z') return open_to("stopped pid 1");
    ::sched_yield();
  }
  return ::kill(1, 0) == 0 || errno == EPERM ? limited("pid 1 takes no notice")
                                             : open_to("ended pid 1");
}

Verdict stop_init(const Bait&) {
  return signal_init(SIGSTOP);
}

Verdict kill_init(const Bait&) {
  return signal_init(SIGKILL);
}

Verdict terminate_init(const Bait&) {
  return signal_init(SIGTERM);
}

struct Slowing {
  const char* name;
  long (*call)();
};

// The numbers come from the kernel's header, which this library does not have.
constexpr int idle_class = 3 << 13;
constexpr int one_process_by_ioprio = 1;
constexpr int all_of_user_by_ioprio = 3;

struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = SCHED_IDLE;
  std::uint64_t flags = 0;
  std::int32_t nice = 19;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

// Each sets what pid 1 already has, or what gives it the lowest priority.
constexpr Slowing slowings[] = {
    {"sched_setaffinity",
     [] {
       cpu_set_t same;
       CPU_ZERO(&same);
       if (::sched_getaffinity(1, sizeof same, &same) != 0) return -1L;
       return static_cast<long>(::sched_setaffinity(1, sizeof same, &same));
     }},
    {"sched_setparam",
     [] {
       const sched_param none = {.sched_priority = 0};
       return static_cast<long>(::sched_setparam(1, &none));
     }},
    {"sched_setscheduler",
     [] {
       const sched_param none = {.sched_priority = 0};
       return static_cast<long>(::sched_setscheduler(1, SCHED_IDLE, &none));
     }},
    {"sched_setattr",
     [] {
       SchedulingAttributes idle;
       return ::syscall(SYS_sched_setattr, 1, &idle, 0);
     }},
    {"setpriority", [] { return static_cast<long>(::setpriority(PRIO_PROCESS, 1, 19)); }},
    {"setpriority of its user",
     [] { return static_cast<long>(::setpriority(PRIO_USER, ::getuid(), 19)); }},
    {"ioprio_set", [] { return ::syscall(SYS_ioprio_set, one_process_by_ioprio, 1, idle_class); }},
    {"ioprio_set of its user",
     [] { return ::syscall(SYS_ioprio_set, all_of_user_by_ioprio, ::getuid(), idle_class); }},
};

// A pid 1 that never runs starts no command and opens no port.
Verdict slow_init(const Bait&) {
  return in_child([] {
    std::string done;
    int error = 0;
    for (const Slowing& slowing : slowings) {
      if (slowing.call() == 0) {
        done += std::string{done.empty() ? "" : ", "} + slowing.name;
      } else if (error == 0 || error == EPERM) {
        error = errno;
      }
    }
    return done.empty() ? denied(error) : open_to("slowed pid 1 by " + done);
  });
}

bool connects(const std::string& name, int kind) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  const Descriptor socket{::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() +
                                           (name[0] == '@' ? 0 : 1));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
}

// A name that is bound in this network namespace belongs to init, or should not exist. On the
// host's own network only the host's bait is tried.
Verdict find_control_socket(const Bait& bait) {
  const bool is_host = namespace_of("net") == bait.network_namespace;
  std::istringstream lines{contents_of("/proc/net/unix")};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_first_of("@/");
    if (at == std::string::npos) continue;
    if (is_host && !line.contains(bait.marker)) continue;
    for (const int kind : {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM}) {
      if (connects(line.substr(at), kind)) return open_to("connected to " + line.substr(at));
    }
  }
  return denied(ENOENT);
}

constexpr Attempt attempts[] = {
    {"ptrace_init", trace},
    {"process_vm_readv_init", read_memory},
    {"read_init_memory", read_memory_file},
    {"read_init_environment", read_environment},
    {"list_init_descriptors", list_descriptors},
    {"take_init_descriptor", take_descriptor},
    {"stop_init", stop_init},
    {"kill_init", kill_init},
    {"terminate_init", terminate_init},
    {"slow_init", slow_init},
    {"connect_control_socket", find_control_socket},
};

}  // namespace

std::span<const Attempt> init_attempts() {
  return attempts;
}

}  // namespace berth::hostile
