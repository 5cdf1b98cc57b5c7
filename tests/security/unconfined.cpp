#include "security/unconfined.hpp"

#include "base/assert.hpp"
#include "base/files.hpp"
#include "base/owned.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace berth::security_test {

namespace {

constexpr std::size_t verdict_bytes_max = 65536;
constexpr int cannot_prepare = 126;

[[noreturn]] void execute(const std::string& hostile, const std::vector<std::string>& words,
                          const std::string& secret) {
  std::vector<char*> arguments{const_cast<char*>("hostile")};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  char* const variables[] = {const_cast<char*>("PATH=/usr/bin:/bin"),
                             const_cast<char*>(secret.c_str()), nullptr};
  ::execve(hostile.c_str(), arguments.data(), variables);
  ::_exit(cannot_prepare);
}

// What a careless sandbox would have: a read-only /usr and a mask in /proc, and a root that may
// remove both. None of it is visible outside.
bool prepare_mounts() {
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("proc", "/proc", "proc", 0, nullptr) == 0 &&
         ::mount("/dev/null", "/proc/cmdline", nullptr, MS_BIND, nullptr) == 0 &&
         ::mount("/usr", "/usr", nullptr, MS_BIND, nullptr) == 0 &&
         ::mount("none", "/usr", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0;
}

// Ends like the child.
[[noreturn]] void follow(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) ::raise(WTERMSIG(status));
  ::_exit(WEXITSTATUS(status));
}

// The new namespace's pid 1 remains as the victim of the attempts on pid 1.
[[noreturn]] void execute_apart(const std::string& hostile, const std::vector<std::string>& words,
                                const std::string& secret) {
  constexpr int all = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  if (::unshare(all) != 0) ::_exit(cannot_prepare);
  const pid_t init = ::fork();
  if (init != 0) follow(init);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!prepare_mounts()) ::_exit(cannot_prepare);
  const pid_t child = ::fork();
  if (child != 0) follow(child);
  execute(hostile, words, secret);
}

[[noreturn]] void execute_with_terminal(const std::string& hostile,
                                        const std::vector<std::string>& words,
                                        const std::string& secret) {
  ::setsid();
  ::signal(SIGHUP, SIG_IGN);
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY);
  char name[64] = {};
  const bool is_made =
      master >= 0 && ::unlockpt(master) == 0 && ::ptsname_r(master, name, sizeof name) == 0;
  // Opened by a session leader without a terminal, it becomes the controlling terminal.
  if (!is_made || ::open(name, O_RDWR) < 0) ::_exit(cannot_prepare);
  execute(hostile, words, secret);
}

}  // namespace

std::string run_unconfined(const std::string& hostile, Shown shown,
                           const std::vector<std::string>& words, const std::string& secret) {
  int ends[2];
  BERTH_ASSERT(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd answer{ends[0]};
  Fd told{ends[1]};
  const pid_t child = ::fork();
  BERTH_ASSERT(child >= 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(told.get(), STDOUT_FILENO);
    switch (shown) {
      case Shown::apart: execute_apart(hostile, words, secret);
      case Shown::with_terminal: execute_with_terminal(hostile, words, secret);
      case Shown::on_the_host:
      case Shown::nowhere: execute(hostile, words, secret);
    }
  }
  told = Fd{};
  const auto said = read_fd(answer.get(), verdict_bytes_max, "the verdict");
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return std::string{"killed SIG"} + ::sigabbrev_np(WTERMSIG(status));
  return said ? said->substr(0, said->find('\n')) : said.error().message;
}

}  // namespace berth::security_test
