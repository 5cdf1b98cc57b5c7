#include "keeper/plugin_worker/plugin_worker.hpp"

#include "base/owned.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/plugin_worker/plugin_enter.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/namespaces.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
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

constexpr std::uint32_t worker_processes_max = 512;
constexpr rlim_t worker_open_files_max = 4096;
constexpr int kill_rounds_max = 200;
constexpr int kill_round_ms = 20;
constexpr int exec_failed = 126;

template <class Number>
Result<Number> number_of(const char* word, const char* what) {
  const std::string_view text{word};
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  return fail(Errc::bad_request, std::string{what} + " is not a number: " + std::string{text});
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

[[noreturn]] void execute(const PluginWorker& worker, const sigset_t& mask) {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::execv(worker.argv.front(), worker.argv.data());
  give_up(worker.argv.front());
}

// The child's path from fork to exec, without a box. The order matters: the process limit counts
// the new user's processes, and a change of user clears the parent-death signal.
[[noreturn]] void become(const PluginWorker& worker, const std::optional<Cgroup>& group,
                         pid_t parent, const sigset_t& mask) {
  ::setpgid(0, 0);
  if (group) {
    errno = group->join(Cgroup::Born::outside);
    if (errno != 0) give_up("join the control group");
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, worker_open_files_max);
  limit(RLIMIT_DATA, worker.memory_bytes_max);
  if (worker.uid != ::geteuid()) limit(RLIMIT_NPROC, worker_processes_max);
  drop_privileges(worker);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) give_up("die with the parent");
  if (::getppid() != parent) ::_exit(exec_failed);
  execute(worker, mask);
}

// Empty if this machine offers us no control groups: then only the limits for each process apply.
std::optional<Cgroup> group_for(const PluginWorker& worker) {
  const std::string id = "plugin-" + std::to_string(::getpid());
  Result<Cgroup> made =
      Cgroup::make(sandbox::detect_layout(), id,
                   {.memory_bytes = worker.memory_bytes_max, .pids = worker_processes_max});
  if (made) return *std::move(made);
  std::fprintf(stderr, "berth-keeper: no control group: %s\n", made.error().message.c_str());
  return std::nullopt;
}

// The group is empty. If it cannot be removed now, the next server removes it.
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

// The pipes belong to the worker alone, so their reader sees them end when the worker ends. The
// keeper keeps only a copy for its own last message.
void let_go_of_streams() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) ::dup2(nothing, stream);
  ::close(nothing);
}

// Kills everything below this process. No process escapes: an orphan becomes a child of this one.
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

// Reaps all children that have ended; keeps the worker's own status.
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

using sandbox::SetupReport;

// What the first process of a box reports to the keeper: how it entered, then how the worker ended.
struct Told {
  enum class Kind : std::uint8_t { entered, ended };
  Kind kind = Kind::entered;
  SetupReport entered = {};
  int status = 0;
};
constexpr int enter_limit_ms = 30'000;

std::optional<Told> hear(const Fd& control, int limit_ms) {
  pollfd answer{control.get(), POLLIN, 0};
  Told told;
  if (::poll(&answer, 1, limit_ms) <= 0) return std::nullopt;
  const ssize_t got = ::recv(control.get(), &told, sizeof told, MSG_DONTWAIT);
  return got == static_cast<ssize_t>(sizeof told) ? std::optional{told} : std::nullopt;
}

void tell(const Fd& control, const Told& told) {
  ::send(control.get(), &told, sizeof told, MSG_NOSIGNAL);
}

// The first process of a box, after it has entered it: starts the worker, reaps all orphans, and
// ends with the worker. The kernel then ends everything else inside.
[[noreturn]] void be_first(const PluginWorker& worker, const Fd& control, const sigset_t& ours,
                           const sigset_t& mask) {
  ::close(box_report_descriptor);
  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child == 0) {
    ::setpgid(0, 0);
    execute(worker, mask);
  }
  let_go_of_streams();
  Told last{.kind = Told::Kind::ended};
  while (true) {
    const int number = ::sigwaitinfo(&ours, nullptr);
    if (number == SIGTERM) ::kill(child, SIGTERM);
    if (!reap(child, last.status)) continue;
    tell(control, last);
    ::_exit(0);
  }
}

// A running worker: the keeper's child and, if that is the first process of a box, the channel to
// it.
struct Running {
  pid_t child = 0;
  Fd control = {};
  BoxReport report = {};
};

class BoxMaker {
 public:
  BoxMaker(const PluginWorker& worker, const std::optional<Cgroup>& group, const sigset_t& ours,
           const sigset_t& mask)
      : worker_(worker), group_(group), ours_(ours), mask_(mask) {
    std::array<char, PATH_MAX> folder{};
    if (::getcwd(folder.data(), folder.size()) != nullptr) start_folder_ = folder.data();
  }

  // Starts it in the strongest box that this machine allows. If there is none, the report says why.
  Running start() {
    Running running;
    SetupReport entered = attempt(BoxLevel::strong, running);
    BoxLevel level = BoxLevel::strong;
    const bool may_be_weak = worker_.box->least < BoxLevel::strong;
    if (entered.failed != sandbox::Phase::none && may_be_weak && is_forbidden_here(entered)) {
      entered = attempt(BoxLevel::weak, running);
      level = BoxLevel::weak;
    }
    const bool has_no_landlock = entered.failed == sandbox::Phase::landlock;
    if (has_no_landlock && level == BoxLevel::weak && worker_.box->least == BoxLevel::none) {
      running.child = ::fork();
      if (running.child < 0) give_up("fork");
      if (running.child == 0) become(worker_, group_, keeper_, mask_);
      entered = {};
      level = BoxLevel::none;
    }
    if (entered.failed == sandbox::Phase::none) {
      running.report = describe_box(setup(Cgroup::Born::outside), level, entered.features);
    } else {
      running.report = describe_refusal(setup(Cgroup::Born::outside), entered);
    }
    return running;
  }

 private:
  BoxSetup setup(Cgroup::Born born) const {
    const bool is_same = worker_.uid == ::geteuid();
    return {.box = *worker_.box,
            .uid = worker_.uid,
            .gid = worker_.gid,
            .memory_bytes_max = worker_.memory_bytes_max,
            .group = group_,
            .born = born,
            .start_folder = start_folder_,
            .report = box_report_descriptor,
            .identity = is_same ? BoxSetup::Identity::same_user : BoxSetup::Identity::other_user};
  }

  SetupReport attempt(BoxLevel level, Running& running) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
      give_up("socketpair");
    }
    Fd control{pair[0]};
    const Fd theirs{pair[1]};
    const bool is_strong = level == BoxLevel::strong;
    // A container that forbids namespaces often has no clone3 either, so the weak box does not use
    // it.
    const int directory = is_strong && group_ ? group_->directory() : -1;
    const BoxSetup wanted = setup(directory >= 0 ? Cgroup::Born::inside : Cgroup::Born::outside);
    sandbox::NewProcess child = is_strong ? sandbox::fork_into(namespaces_of(wanted), directory)
                                          : sandbox::NewProcess{.pid = ::fork(), .handle = {}};
    if (child.pid < 0) return {.failed = sandbox::Phase::process, .error_number = -child.pid};
    if (child.pid == 0) {
      control = Fd{};
      become_first(wanted, level, theirs);
    }
    const auto told = hear(control, enter_limit_ms);
    if (told && told->entered.failed == sandbox::Phase::none) {
      running.child = child.pid;
      running.control = std::move(control);
      return told->entered;
    }
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    if (told) return told->entered;
    return {.failed = sandbox::Phase::init, .error_number = ETIMEDOUT};
  }

  [[noreturn]] void become_first(const BoxSetup& wanted, BoxLevel level, const Fd& theirs) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    const SetupReport entered =
        level == BoxLevel::strong ? enter_box(wanted) : enter_weak_box(wanted);
    tell(theirs, {.kind = Told::Kind::entered, .entered = entered});
    if (entered.failed != sandbox::Phase::none) ::_exit(exec_failed);
    // The keeper may have ended before this process set its parent-death signal.
    pollfd keeper{theirs.get(), 0, 0};
    if (::poll(&keeper, 1, 0) > 0 && (keeper.revents & POLLHUP) != 0) ::_exit(exec_failed);
    if (level == BoxLevel::strong) be_first(worker_, theirs, ours_, mask_);
    ::setpgid(0, 0);
    execute(worker_, mask_);
  }

  const PluginWorker& worker_;
  const std::optional<Cgroup>& group_;
  const sigset_t& ours_;
  const sigset_t& mask_;
  std::string start_folder_ = "/";
  pid_t keeper_ = ::getpid();
};

Running start_worker(const PluginWorker& worker, const std::optional<Cgroup>& group,
                     const sigset_t& ours, const sigset_t& mask) {
  if (worker.box) {
    Running running = BoxMaker{worker, group, ours, mask}.start();
    send_report(box_report_descriptor, running.report);
    ::close(box_report_descriptor);
    return running;
  }
  const pid_t self = ::getpid();
  Running running{.child = ::fork()};
  if (running.child < 0) give_up("fork");
  if (running.child == 0) become(worker, group, self, mask);
  return running;
}

// How the worker ended, as the first process of its box or the kernel reported it.
int status_of(const Running& running, int status) {
  if (!running.control) return status;
  const auto told = hear(running.control, 0);
  return told && told->kind == Told::Kind::ended ? told->status : status;
}

}  // namespace

Result<PluginWorker> parse_plugin_worker(std::span<char*> words) {
  const auto dashes =
      std::ranges::find_if(words, [](const char* word) { return std::string_view{word} == "--"; });
  const auto before = static_cast<std::size_t>(dashes - words.begin());
  if (before < 3 || before + 1 >= words.size()) {
    return fail(Errc::bad_request,
                "expected UID GID MEMORY_BYTES [box OPTION...] -- PROGRAM [ARG...] after `plugin`");
  }
  PluginWorker worker{.argv = words.subspan(before + 1)};
  BERTH_TRY(worker.uid, number_of<uid_t>(words[0], "the user id"));
  BERTH_TRY(worker.gid, number_of<gid_t>(words[1], "the group id"));
  BERTH_TRY(worker.memory_bytes_max, number_of<std::uint64_t>(words[2], "the memory limit"));
  if (before > 3) {
    BERTH_TRY(worker.box, parse_box(words.subspan(3, before - 3)));
  }
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
  std::optional<Cgroup> group = group_for(worker);
  const Fd words{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  const Running running = start_worker(worker, group, ours, none);
  if (!running.report.failure.empty()) {
    if (group) (void)group->remove();
    std::fprintf(stderr, "berth-keeper: %s\n", running.report.failure.c_str());
    ::_exit(exec_failed);
  }
  let_go_of_streams();
  int status = 0;
  while (true) {
    const int number = ::sigwaitinfo(&ours, nullptr);
    if (number == SIGTERM) ::kill(running.child, SIGTERM);
    if (number == SIGHUP || number == SIGINT) {
      ::kill(running.child, SIGKILL);
      kill_all();
      if (group) (void)group->remove();
      end_as(SIGKILL);
    }
    if (!reap(running.child, status)) continue;
    status = status_of(running, status);
    kill_all();
    say_and_remove(group, worker, status, words);
    end_as(status);
  }
}

}  // namespace berth::keeper
