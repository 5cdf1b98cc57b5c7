#include "keeper/holder/launch.hpp"

#include "base/text.hpp"
#include "keeper/holder/signals.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace berth::keeper {
namespace {

constexpr std::string_view default_path = "/usr/local/bin:/usr/bin:/bin";

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> candidates_of(const Exec& exec) {
  const std::string& command = exec.argv[0];
  if (command.contains('/')) return {command};
  std::vector<std::string> found;
  const std::string path = path_of(exec);
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = path.substr(at, end - at);
    found.push_back((folder.empty() ? "." : folder) + "/" + command);
    at = end + 1;
  }
  return found;
}

// A command must not inherit the signals that the keeper ignores. All others are at their default.
void reset_signals() {
  for (const int number : ignored_signals) ::signal(number, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

int join_cgroup(const char* procs) {
  const int file = ::open(procs, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error_number = ::write(file, "0", 1) == 1 ? 0 : errno;
  ::close(file);
  return error_number;
}

std::string reason(int error_number) {
  std::array<char, 128> text{};
  return ::strerror_r(error_number, text.data(), text.size());
}

Error explain_exec(const Exec& exec, const StartFailure& failure) {
  const int error_number = failure.error_number;
  const std::string subject = "exec " + exec.exec_id + ": command " + in_quotes(exec.argv[0]);
  const std::string in_cwd = " in directory " + in_quotes(exec.cwd);
  if (error_number == E2BIG) {
    return {Errc::command_too_large, subject + ": arguments and environment are too long for Linux",
            "pass long values in a file or on stdin"};
  }
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  if (missing && failure.command_exists) {
    return {Errc::command_not_executable,
            subject + " exists" + in_cwd + ", but the interpreter or loader that it names does not",
            "look at its first line, or at the architecture it was built for"};
  }
  if (missing) {
    const std::string where =
        exec.argv[0].contains('/') ? "" : "; looked in PATH '" + path_of(exec) + "'";
    return {Errc::command_not_found, subject + " was not found" + in_cwd + where,
            "install it, give its full path, or set PATH in the environment of the run"};
  }
  if (error_number == EACCES || error_number == ENOEXEC || error_number == EPERM) {
    return {Errc::command_not_executable,
            subject + " is not executable" + in_cwd + ": " + reason(error_number),
            "set its execute permission, or name its interpreter as the command"};
  }
  return {Errc::command_start_failed, subject + in_cwd + ": exec: " + reason(error_number)};
}

}  // namespace

bool exists_somewhere(const Exec& exec) {
  for (const std::string& candidate : candidates_of(exec)) {
    const std::string path = candidate[0] == '/' ? candidate : exec.cwd + "/" + candidate;
    if (::access(path.c_str(), F_OK) == 0) return true;
  }
  return false;
}

std::string path_of(const Exec& exec) {
  for (const std::string& entry : exec.environment) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return std::string{default_path};
}

Launch::Launch(const Exec& exec, rlimit open_files)
    : exec_(exec),
      open_files_(open_files),
      candidates_(candidates_of(exec)),
      cgroup_procs_(exec.cgroup_dir.empty() ? "" : exec.cgroup_dir + "/cgroup.procs"),
      argv_(pointers_to(exec.argv)),
      environment_(pointers_to(exec.environment)) {}

StartFailure Launch::enter(const ChildEnds& ends, pid_t parent) const {
  if (ends.in) ::dup2(ends.in.get(), STDIN_FILENO);
  ::dup2(ends.out.get(), STDOUT_FILENO);
  ::dup2(ends.err.get(), STDERR_FILENO);
  reset_signals();
  ::umask(022);
  ::setrlimit(RLIMIT_NOFILE, &open_files_);
  if (::setsid() < 0) return {Step::session, errno};
  if (exec_.has_terminal() && ::ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) {
    return {Step::terminal, errno};
  }
  if (!cgroup_procs_.empty()) {
    if (const int error_number = join_cgroup(cgroup_procs_.c_str()); error_number != 0) {
      return {Step::cgroup, error_number};
    }
  }
  // If the warden died before this call, no signal would come; hence the check after it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) return {Step::session, ESRCH};
  if (::chdir(exec_.cwd.c_str()) != 0) return {Step::chdir, errno};
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  int error_number = ENOENT;
  for (const std::string& candidate : candidates_) {
    ::execve(candidate.c_str(), argv_.data(), environment_.data());
    // As in every shell, a forbidden file does not hide an executable one later in the path.
    if (errno == ENOENT || errno == ENOTDIR) continue;
    error_number = errno;
    if (errno != EACCES) break;
  }
  return {Step::exec, error_number};
}

pid_t Launch::run(const ChildEnds& ends, StartFailure& failure) const {
  // The child shares this memory, and this process waits until the child has executed the command
  // or ended. So the child writes a failure directly to where the parent reads it.
  static volatile int failed_step = 0;
  static volatile int failed_errno = 0;
  failed_step = 0;
  const pid_t self = ::getpid();
  const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork): see above
  if (child == 0) {
    const StartFailure failed = enter(ends, self);
    failed_errno = failed.error_number;
    failed_step = static_cast<int>(failed.step);
    ::_exit(127);
  }
  if (child < 0) {
    failure = {Step::fork, errno};
  } else {
    failure = {static_cast<Step>(failed_step), failed_errno};
  }
  return child;
}

Error explain(const Exec& exec, const StartFailure& failure) {
  const std::string subject = "exec " + exec.exec_id + ": ";
  switch (failure.step) {
    case Step::chdir:
      return {Errc::working_directory_missing,
              subject + "the directory " + in_quotes(exec.cwd) +
                  " cannot be entered: " + reason(failure.error_number),
              "create it, or give another working directory"};
    case Step::exec: return explain_exec(exec, failure);
    default:
      return {Errc::command_start_failed,
              subject + "command " + in_quotes(exec.argv[0]) + " could not be started: " +
                  std::string{name_of(failure.step)} + ": " + reason(failure.error_number)};
  }
}

}  // namespace berth::keeper
