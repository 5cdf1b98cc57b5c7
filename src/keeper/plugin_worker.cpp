#include "keeper/plugin_worker.hpp"

#include "base/owned.hpp"
#include "keeper/process_tree.hpp"
#include "keeper/sandbox/cgroup.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace berth::keeper {
namespace {

using sandbox::Cgroup;

constexpr std::uint32_t processes_max = 512;
constexpr rlim_t open_files_max = 4096;
constexpr int kill_rounds_max = 200;
constexpr int kill_round_ms = 20;
constexpr int exec_failed = 126;

template <class Number>
Result<Number> number_of(const char* word, const char* what) {
  const std::string_view text{word};
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  return fail(Errc::bad_request, std::string{what} + " is no number: " + std::string{text});
}

[[noreturn]] void give_up(const char* step) {
  std::fprintf(stderr, "berth-keeper: %s: %s\n", step, std::strerror(errno));
  ::_exit(exec_failed);
}

void limit(__rlimit_resource what, rlim_t most) {
  rlimit now{};
  ::getrlimit(what, &now);
  const rlim_t least = now.rlim_max < most ? now.rlim_max : most;
  const rlimit next{least, least};
  if (::setrlimit(what, &next) != 0) give_up("setrlimit");
}

void drop_privileges(const PluginWorker& worker) {
  if (worker.uid != ::geteuid()) {
    if (::setgroups(0, nullptr) != 0) give_up("setgroups");
    if (::setresgid(worker.gid, worker.gid, worker.gid) != 0) give_up("setresgid");
    if (::setresuid(worker.uid, worker.uid, worker.uid) != 0) give_up("setresuid");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) give_up("no_new_privs");
}

// The child's way from the fork to the program. The order matters: the limit on processes counts
// those of the new user, and a change of user forgets with whom to die.
[[noreturn]] void become(const PluginWorker& worker, const std::optional<Cgroup>& group,
                         pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  if (group) {
    errno = group->join(Cgroup::Born::outside);
    if (errno != 0) give_up("join the control group");
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, open_files_max);
  limit(RLIMIT_DATA, worker.memory_bytes_max);
  if (worker.uid != ::geteuid()) limit(RLIMIT_NPROC, processes_max);
  drop_privileges(worker);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) give_up("die with the parent");
  if (::getppid() != parent) ::_exit(exec_failed);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::execv(worker.argv.front(), worker.argv.data());
  give_up(worker.argv.front());
}

// Nothing where this machine has no control groups for us: then each process has its own limit, and
// no more.
std::optional<Cgroup> group_for(const PluginWorker& worker) {
  const std::string id = "plugin-" + std::to_string(::getpid());
  Result<Cgroup> made =
      Cgroup::make(sandbox::detect_layout(), id,
                   {.memory_bytes = worker.memory_bytes_max, .pids = processes_max});
  if (made) return *std::move(made);
  std::fprintf(stderr, "berth-keeper: no control group: %s\n", made.error().message.c_str());
  return std::nullopt;
}

// Nobody is left in it. What cannot be removed now is swept by the next server.
void say_and_remove(std::optional<Cgroup>& group, const PluginWorker& worker, int status,
                    const Fd& words) {
  if (!group) return;
  const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (was_killed && group->oom_kills() > 0) {
    const std::string line = std::string{out_of_memory_mark} +
                             "the limit for all its processes is " +
                             std::to_string(worker.memory_bytes_max >> 20) + " MB\n";
    (void)!::write(words.get(), line.data(), line.size());
  }
  (void)group->remove();
}

// Its pipes are the worker's alone: whoever reads them sees their end with the worker's. Only what
// it says at last, after the worker, is this one's.
void let_go_of_streams() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) ::dup2(nothing, stream);
  ::close(nothing);
}

// Everything below this process. Nobody leaves it: who loses a parent becomes a child of this one.
void kill_all() {
  for (int round = 0; round < kill_rounds_max; ++round) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    const std::vector<pid_t> left = descendants_of(::getpid());
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::poll(nullptr, 0, round == 0 ? 1 : kill_round_ms);
  }
}

[[noreturn]] void end_as(int status) {
  if (!WIFSIGNALED(status)) ::_exit(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::signal(number, SIG_DFL);
  sigset_t just_it;
  ::sigemptyset(&just_it);
  ::sigaddset(&just_it, number);
  ::sigprocmask(SIG_UNBLOCK, &just_it, nullptr);
  ::raise(number);
  ::_exit(exec_failed);
}

// Waits for all children that have ended; the status of the worker itself is kept.
bool reap(pid_t worker, int& status) {
  bool ended = false;
  int some = 0;
  for (pid_t pid = ::waitpid(-1, &some, WNOHANG); pid > 0; pid = ::waitpid(-1, &some, WNOHANG)) {
    if (pid != worker) continue;
    status = some;
    ended = true;
  }
  return ended;
}

}  // namespace

Result<PluginWorker> parse_plugin_worker(std::span<char*> words) {
  if (words.size() < 5 || std::string_view{words[3]} != "--") {
    return fail(Errc::bad_request,
                "expected UID GID MEMORY_BYTES -- PROGRAM [ARG...] after `plugin`");
  }
  PluginWorker worker{.argv = words.subspan(4)};
  BERTH_TRY(worker.uid, number_of<uid_t>(words[0], "the user id"));
  BERTH_TRY(worker.gid, number_of<gid_t>(words[1], "the group id"));
  BERTH_TRY(worker.memory_bytes_max, number_of<std::uint64_t>(words[2], "the memory limit"));
  if (worker.uid == 0 || worker.gid == 0) {
    return fail(Errc::bad_request, "a plugin never runs as root", "give it a user of its own");
  }
  return worker;
}

void run_plugin_worker(const PluginWorker& worker) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGHUP, 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  sigset_t before;
  sigset_t ours;
  ::sigemptyset(&ours);
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGCHLD}) ::sigaddset(&ours, number);
  ::sigprocmask(SIG_BLOCK, &ours, &before);
  sigset_t none;
  ::sigemptyset(&none);
  const pid_t self = ::getpid();
  std::optional<Cgroup> group = group_for(worker);
  const Fd words{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child == 0) become(worker, group, self, none);
  let_go_of_streams();
  int status = 0;
  while (true) {
    const int number = ::sigwaitinfo(&ours, nullptr);
    if (number == SIGTERM) ::kill(child, SIGTERM);
    if (number == SIGHUP || number == SIGINT) {
      ::kill(child, SIGKILL);
      kill_all();
      if (group) (void)group->remove();
      end_as(SIGKILL);
    }
    if (!reap(child, status)) continue;
    kill_all();
    say_and_remove(group, worker, status, words);
    end_as(status);
  }
}

}  // namespace berth::keeper
