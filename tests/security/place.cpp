#include "security/place.hpp"

#include "base/assert.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/output.hpp"
#include "keeper/protocol/state_folder.hpp"
#include "security/host_bait.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <ostream>

namespace berth::security_test {

namespace {

constexpr uid_t ordinary_user = 65534;

// Root creates one only in this way, and other users' processes are not affected.
bool forbid_by_filter() {
  constexpr std::uint32_t flags = offsetof(seccomp_data, args);
  sock_filter steps[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                         BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3),
                         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, flags),
                         BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_NEWUSER, 0, 1),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
                         BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = std::size(steps), .filter = steps};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

bool put(const std::string& path, std::string_view text) {
  const Fd file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  return file && ::write(file.get(), text.data(), text.size()) == std::ssize(text);
}

// A user namespace with the host's ids that cannot create more. The limit is its own: the machine's
// is unchanged.
bool forbid_by_limit() {
  const std::string process = "/proc/" + std::to_string(::getpid());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const Fd wait{ends[0]};
  Fd go{ends[1]};
  const pid_t mapper = ::fork();
  if (mapper == 0) {
    go = Fd{};
    char ready = 0;
    const bool is_ready = ::read(wait.get(), &ready, 1) == 1;
    const std::string map = "0 0 1\n65534 65534 1\n";
    ::_exit(is_ready && put(process + "/uid_map", map) && put(process + "/gid_map", map) ? 0 : 1);
  }
  if (mapper < 0 || ::unshare(CLONE_NEWUSER) != 0 || ::write(go.get(), "x", 1) != 1) return false;
  int status = 1;
  return ::waitpid(mapper, &status, 0) == mapper && status == 0 &&
         put("/proc/sys/user/max_user_namespaces", "0");
}

bool give_up_root() {
  return ::setgroups(0, nullptr) == 0 &&
         ::setresgid(ordinary_user, ordinary_user, ordinary_user) == 0 &&
         ::setresuid(ordinary_user, ordinary_user, ordinary_user) == 0;
}

bool go_to(const Place& place) {
  const bool is_ordinary = place.starter == Starter::ordinary;
  if (place.user_namespaces == UserNamespaces::forbidden) {
    if (!(is_ordinary ? forbid_by_limit() : forbid_by_filter())) return false;
  }
  return !is_ordinary || give_up_root();
}

// Returns the pid of the keeper, started by a child that cannot regain what it has given up.
Result<pid_t> spawn_apart(const Place& place, const keeper::SpawnOptions& options) {
  int ends[2];
  BERTH_ASSERT(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd answer{ends[0]};
  Fd told{ends[1]};
  const pid_t child = ::fork();
  BERTH_ASSERT(child >= 0);
  if (child == 0) {
    const auto spawned = go_to(place) ? keeper::spawn_keeper(options)
                                      : fail(Errc::sandbox_unavailable, "root cannot be given up");
    const pid_t pid = spawned ? spawned->pid : -1;
    const ssize_t written = ::write(told.get(), &pid, sizeof pid);
    ::_exit(written == sizeof pid ? 0 : 1);
  }
  told = Fd{};
  pid_t pid = -1;
  const ssize_t got = ::read(answer.get(), &pid, sizeof pid);
  ::waitpid(child, nullptr, 0);
  if (got != sizeof pid || pid < 0) {
    return fail(Errc::sandbox_unavailable, "the keeper of this place did not start");
  }
  return pid;
}

}  // namespace

std::string name_of(const Place& place) {
  const std::string starter = place.starter == Starter::root ? "by_root" : "by_ordinary_user";
  const std::string limit =
      place.user_namespaces == UserNamespaces::forbidden ? "_without_user_namespaces" : "";
  return starter + limit +
         (place.identity == keeper::sandbox::Identity::root ? "_as_root" : "_as_user");
}

void PrintTo(const Place& place, std::ostream* out) {
  *out << name_of(place);
}

std::string reason_against(const Place& place) {
  const bool is_forbidden = place.user_namespaces == UserNamespaces::forbidden;
  if ((place.starter == Starter::root || is_forbidden) && ::geteuid() != 0)
    return "this place cannot be made here: only root can start it";
  return {};
}

bool eventually(const std::function<bool()>& is_so, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!is_so()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

HostileProgram::HostileProgram() {
  ::chmod(folder_.path().c_str(), 0755);
  std::filesystem::copy_file(BERTH_HOSTILE, path());
  ::chmod(path().c_str(), 0755);
}

keeper::sandbox::Plan plan_of(const Place& place, const std::string& hostile) {
  keeper::sandbox::Plan plan;
  if (place.identity == keeper::sandbox::Identity::root) plan.user = {.uid = 0, .gid = 0};
  if (place.is_minimal()) {
    plan.min_level = keeper::sandbox::Level::minimal;
  } else {
    plan.binds = {{.source = hostile, .target = hostile_inside}};
  }
  plan.upper_bytes = disk_bytes_max;
  // /tmp and /dev/shm are one file system, which holds the limits of both.
  plan.upper_inodes = inodes_max;
  plan.scratch_inodes = inodes_max;
  plan.tmp_bytes = disk_bytes_max / 2;
  plan.shm_bytes = disk_bytes_max / 2;
  plan.rlimits = {{.resource = RLIMIT_NOFILE, .soft = files_max, .hard = files_max}};
  plan.limits.memory_bytes = memory_bytes_max;
  plan.limits.pids = processes_max;
  return plan;
}

std::string Deed::verdict() const {
  if (ended.outcome == keeper::Outcome::signaled) {
    const char* name = ::sigabbrev_np(ended.signal);
    return std::string{"killed SIG"} + (name != nullptr ? name : "?");
  }
  if (ended.outcome != keeper::Outcome::exited) return std::string{name_of(ended.outcome)};
  return out.substr(0, out.find_first_of("\r\n"));
}

Result<std::unique_ptr<Sandbox>> Sandbox::make(const Origin& origin) {
  std::unique_ptr<Sandbox> sandbox{new Sandbox};
  BERTH_DO(sandbox->start(origin));
  return sandbox;
}

Result<> Sandbox::start(const Origin& origin) {
  // Another user's keeper is started by a child and becomes this process's child when that ends.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  folder_ = root_.file("k");
  keeper::SpawnOptions options{
      .program = root_.file("berth-keeper"), .folder = folder_, .environment = origin.environment};
  std::filesystem::copy_file(BERTH_KEEPER, options.program);
  place_ = origin.place;
  if (place_ != Place{.starter = Starter::root, .identity = place_.identity} && ::geteuid() == 0) {
    BERTH_DO(start_apart(place_, options));
  } else {
    // As servers do.
    prefork_.emplace(keeper::KeeperPrefork::Options{.program = options.program,
                                                    .environment = options.environment});
    BERTH_TRY(Fd control, prefork_->start_keeper(folder_));
    client_.emplace(std::move(control));
    BERTH_DO(client_->list());  // then its card exists
    BERTH_TRY(const keeper::FoundKeeper found, keeper::look_at_keeper(folder_));
    pid_ = found.identity.pid;
  }
  BERTH_DO(client_->renew(10min));
  BERTH_TRY(isolation_, client_->confine(origin.plan));
  if (place_.is_minimal()) {
    std::filesystem::copy_file(BERTH_HOSTILE, box() + "/hostile");
    ::chmod((box() + "/hostile").c_str(), 0755);
  }
  return {};
}

Result<> Sandbox::start_apart(const Place& place, const keeper::SpawnOptions& options) {
  ::chmod(root_.path().c_str(), 0755);
  ::mkdir(folder_.c_str(), 0700);
  const bool is_ordinary = place.starter == Starter::ordinary;
  BERTH_ASSERT(!is_ordinary || ::chown(folder_.c_str(), ordinary_user, ordinary_user) == 0);
  BERTH_TRY(pid_, spawn_apart(place, options));
  Result<Fd> socket = fail(Errc::keeper_unreachable, "it was not tried");
  eventually([&] { return (socket = keeper::connect_keeper(folder_)).has_value(); });
  if (!socket) return std::unexpected(std::move(socket).error());
  client_.emplace(*std::move(socket));
  return {};
}

std::string Sandbox::box() const {
  return folder_ + "/" + std::string{keeper::sandbox::box_folder};
}

// Its parent is this process, or the prefork.
bool Sandbox::is_over() const {
  if (::waitpid(pid_, nullptr, WNOHANG) == pid_) return true;
  return !keeper::process_stat(pid_);
}

Sandbox::~Sandbox() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  if (!eventually([&] { return is_over(); })) {
    ::kill(pid_, SIGKILL);
    eventually([&] { return is_over(); });
  }
}

keeper::Exec Sandbox::hostile(std::vector<std::string> words) {
  words.insert(words.begin(), place_.is_minimal() ? box() + "/hostile" : hostile_inside);
  return {.exec_id = "e" + std::to_string(++last_id_),
          .argv = std::move(words),
          .environment = {"PATH=/usr/bin:/bin"},
          .cwd = "/",
          .deadline_ms = 60'000,
          .grace_ms = 0};
}

Result<Deed> Sandbox::run(const keeper::Exec& exec) {
  BERTH_TRY(keeper::Ended ended, client_->run(exec, 90s));
  return Deed{.ended = std::move(ended), .out = output_of(exec.exec_id)};
}

std::string Sandbox::output_of(const std::string& exec_id) const {
  std::string out;
  auto reader = keeper::OutputReader::open(folder_ + "/" + keeper::output_file(exec_id));
  while (reader) {
    auto record = reader->next();
    if (!record || !*record) break;
    if ((*record)->stream == keeper::Stream::out) out += (*record)->bytes;
  }
  return out;
}

void Sandbox::lose_keeper() {
  ::kill(pid_, SIGKILL);
  eventually([&] { return is_over(); });
  pid_ = 0;
}

Result<> Sandbox::stop(std::chrono::milliseconds grace) {
  BERTH_DO(client_->stop(grace));
  if (!eventually([&] { return is_over(); })) {
    return fail(Errc::keeper_unreachable, "the keeper does not end");
  }
  pid_ = 0;
  prefork_.reset();  // or the next sandbox would be in this one's network
  return {};
}

}  // namespace berth::security_test
