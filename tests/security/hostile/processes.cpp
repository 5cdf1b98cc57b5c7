#include "security/hostile/attempt.hpp"
#include "security/hostile/tools.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

// Reaching processes outside, and gaining privileges inside.
namespace berth::hostile {

namespace {

// Linked at a fixed address, so it has the same one in the host's copy of this program.
volatile const char landmark[] = "a landmark of the hostile program";

Verdict trace(const Bait& bait) {
  if (::ptrace(PTRACE_SEIZE, bait.pid, nullptr, nullptr) != 0) return denied();
  ::ptrace(PTRACE_INTERRUPT, bait.pid, nullptr, nullptr);
  ::waitpid(bait.pid, nullptr, __WALL);
  ::ptrace(PTRACE_DETACH, bait.pid, nullptr, nullptr);
  return open_to("traced a process of the host");
}

Verdict read_memory(const Bait& bait) {
  char bytes[sizeof landmark] = {};
  const iovec here = {.iov_base = bytes, .iov_len = sizeof bytes};
  const iovec there = {.iov_base = const_cast<char*>(landmark), .iov_len = sizeof bytes};
  if (::process_vm_readv(bait.pid, &here, 1, &there, 1, 0) < 0) return denied();
  return std::strstr(bytes, "landmark") != nullptr ? open_to("read memory of the host's process")
                                                   : limited("read nothing of it");
}

Verdict signal_host(const Bait& bait) {
  return ::kill(bait.pid, 0) == 0 ? open_to("may signal a process of the host") : denied();
}

Verdict signal_everyone(const Bait& bait) {
  // Signal 0 to all processes: the result shows whether there is any.
  if (::kill(bait.pid, 0) != 0 && ::kill(-bait.pid, 0) != 0) return denied();
  return open_to("reaches the host's process group");
}

Verdict hold_host(const Bait& bait) {
  const Descriptor process{static_cast<int>(::syscall(SYS_pidfd_open, bait.pid, 0))};
  return process ? open_to("holds a process of the host") : denied();
}

Verdict see_host(const Bait& bait) {
  for (const pid_t pid : visible_processes()) {
    const std::string words = contents_of("/proc/" + std::to_string(pid) + "/cmdline");
    if (words.contains("bait") && words.contains(bait.marker)) {
      return open_to("sees the host's process " + std::to_string(pid));
    }
  }
  return denied(ESRCH);
}

// The program's effective user once it runs, or -1 when that is not visible.
int effective_user_of(pid_t pid, std::string_view program) {
  for (int looks = 0; looks < 2000; ++looks) {
    const std::string status = contents_of("/proc/" + std::to_string(pid) + "/status");
    if (status.empty() || status.contains("State:\tZ")) return -1;
    const std::size_t at = status.find("\nUid:\t");
    if (status.starts_with("Name:\t" + std::string{program} + "\n") && at != std::string::npos) {
      return std::atoi(status.c_str() + status.find('\t', at + 6) + 1);
    }
    ::sched_yield();
  }
  return -1;
}

// Runs a set-user-id program that waits for a password, as an ordinary user.
Verdict run_su(uid_t user) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return denied();
  const pid_t child = ::fork();
  if (child < 0) return denied();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(ends[0], STDIN_FILENO);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    if (::getuid() != user && ::syscall(SYS_setresuid, user, user, user) != 0) ::_exit(1);
    ::execl("/usr/bin/su", "su", nullptr);
    ::_exit(1);
  }
  const int effective = effective_user_of(child, "su");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  if (effective == 0) return open_to("became root through su");
  return denied(EPERM);
}

Verdict gain_by_su(const Bait&) {
  if (::access("/usr/bin/su", X_OK) != 0) return denied();
  return run_su(::getuid() != 0 ? ::getuid() : 65534);
}

bool copy_program(const std::string& path) {
  const std::string from = "/proc/self/exe";
  const Descriptor source{::open(from.c_str(), O_RDONLY | O_CLOEXEC)};
  const Descriptor target{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700)};
  if (!source || !target) return false;
  char bytes[65536];
  for (ssize_t got = 0; (got = ::read(source.get(), bytes, sizeof bytes)) > 0;) {
    if (::write(target.get(), bytes, static_cast<std::size_t>(got)) != got) return false;
  }
  return true;
}

// Root makes a set-user-id copy of this program, and an ordinary user runs it.
Verdict gain_by_own_program(const Bait&) {
  const Scratch scratch;
  const std::string program = scratch.file("gain");
  if (!copy_program(program)) return denied();
  if (::chmod(scratch.path().c_str(), 0755) != 0 || ::chmod(program.c_str(), 04755) != 0) {
    return denied();
  }
  const uid_t user = ::getuid() != 0 ? ::getuid() : 65534;
  const pid_t child = ::fork();
  if (child < 0) return denied();
  if (child == 0) {
    if (::getuid() != user && ::syscall(SYS_setresuid, user, user, user) != 0) ::_exit(2);
    ::execl(program.c_str(), program.c_str(), "effective-user", nullptr);
    ::_exit(3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 100) return open_to("became root again");
  return denied(EPERM);
}

Verdict run_first(const Bait&) {
  const sched_param lowest = {.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_FIFO, &lowest) == 0) {
    const sched_param none = {.sched_priority = 0};
    ::sched_setscheduler(0, SCHED_OTHER, &none);
    return open_to("ran before everyone else");
  }
  const int error = errno;
  if (::setpriority(PRIO_PROCESS, 0, -20) == 0) return open_to("took priority -20");
  return denied(error);
}

// It outlives this process, and only an outside process can check whether it survived. It ends
// itself after half a minute.
Verdict leave_daemon(const Bait& bait) {
  const pid_t child = ::fork();
  if (child < 0) return denied();
  if (child == 0) {
    ::setsid();
    if (::fork() == 0) {
      for (const int number : {SIGTERM, SIGHUP, SIGINT}) ::signal(number, SIG_IGN);
      ::close(STDIN_FILENO);
      ::close(STDOUT_FILENO);
      ::close(STDERR_FILENO);
      ::execl("/proc/self/exe", "hostile", "daemon", bait.marker.c_str(), nullptr);
    }
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  return limited("left a daemon");
}

Verdict lower_oom_score(const Bait&) {
  const Descriptor file{::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)};
  if (!file || ::write(file.get(), "-900", 4) != 4) return denied();
  return open_to("made itself the last to be killed for memory");
}

// The host's core handler would write the workload's core dump.
Verdict dump_core(const Bait&) {
  const Scratch scratch;
  const pid_t child = ::fork();
  if (child < 0) return denied();
  if (child == 0) {
    const rlimit endless = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    const rlimit some = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (::setrlimit(RLIMIT_CORE, &endless) != 0 && ::setrlimit(RLIMIT_CORE, &some) != 0) {
      ::_exit(errno);
    }
    if (::chdir(scratch.path().c_str()) != 0) ::_exit(ENOENT);
    ::abort();
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) return denied(WEXITSTATUS(status));
  return WCOREDUMP(status) ? open_to("dumped core") : denied(EPERM);
}

constexpr Attempt attempts[] = {
    {"ptrace_host_process", trace},         {"process_vm_readv_host", read_memory},
    {"signal_host_process", signal_host},   {"signal_host_group", signal_everyone},
    {"pidfd_open_host_process", hold_host}, {"see_host_processes", see_host},
    {"gain_by_setuid_program", gain_by_su}, {"gain_by_own_setuid_program", gain_by_own_program},
    {"realtime_priority", run_first},       {"daemon_survives", leave_daemon},
    {"lower_oom_score", lower_oom_score},   {"dump_core", dump_core},
};

}  // namespace

std::span<const Attempt> process_attempts() {
  return attempts;
}

}  // namespace berth::hostile
