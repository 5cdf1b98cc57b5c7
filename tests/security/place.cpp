#include "security/place.hpp"

#include "base/assert.hpp"
#include "keeper/output.hpp"
#include "keeper/process_tree.hpp"
#include "keeper/state_folder.hpp"
#include "security/host_bait.hpp"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <ostream>

namespace berth::security_test {

namespace {

constexpr uid_t ordinary_user = 65534;

// Answers the pid of the keeper, started by a child that has given up root for good.
Result<pid_t> spawn_as_ordinary(const keeper::SpawnOptions& options) {
  int ends[2];
  BERTH_ASSERT(::pipe2(ends, O_CLOEXEC) == 0);
  const Fd answer{ends[0]};
  Fd told{ends[1]};
  const pid_t child = ::fork();
  BERTH_ASSERT(child >= 0);
  if (child == 0) {
    const bool is_ordinary = ::setgroups(0, nullptr) == 0 &&
                             ::setresgid(ordinary_user, ordinary_user, ordinary_user) == 0 &&
                             ::setresuid(ordinary_user, ordinary_user, ordinary_user) == 0;
    const auto spawned = is_ordinary ? keeper::spawn_keeper(options)
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
    return fail(Errc::sandbox_unavailable, "the keeper of an ordinary user did not start");
  }
  return pid;
}

}  // namespace

std::string name_of(const Place& place) {
  const std::string starter = place.starter == Starter::root ? "by_root" : "by_ordinary_user";
  return starter + (place.identity == keeper::sandbox::Identity::root ? "_as_root" : "_as_user");
}

void PrintTo(const Place& place, std::ostream* out) {
  *out << name_of(place);
}

std::string reason_against(const Place& place) {
  if (place.starter == Starter::root && ::geteuid() != 0)
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
  plan.binds = {{.source = hostile, .target = hostile_inside}};
  plan.upper_bytes = disk_bytes_max;
  plan.upper_inodes = inodes_max;
  plan.tmp_bytes = disk_bytes_max;
  plan.shm_bytes = disk_bytes_max;
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
  // The keeper of another user is started by a child and becomes this process's when that ends.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  folder_ = root_.file("k");
  keeper::SpawnOptions options{
      .program = root_.file("berth-keeper"), .folder = folder_, .environment = origin.environment};
  std::filesystem::copy_file(BERTH_KEEPER, options.program);
  const bool changes_user = origin.place.starter == Starter::ordinary && ::geteuid() == 0;
  if (changes_user) {
    ::chmod(root_.path().c_str(), 0755);
    ::mkdir(folder_.c_str(), 0700);
    BERTH_ASSERT(::chown(folder_.c_str(), ordinary_user, ordinary_user) == 0);
    BERTH_TRY(pid_, spawn_as_ordinary(options));
    Result<Fd> socket = fail(Errc::keeper_unreachable, "it was not tried");
    eventually([&] { return (socket = keeper::connect_keeper(folder_)).has_value(); });
    if (!socket) return std::unexpected(std::move(socket).error());
    client_.emplace(*std::move(socket));
  } else {
    // As servers do.
    nursery_.emplace(
        keeper::Nursery::Options{.program = options.program, .environment = options.environment});
    BERTH_TRY(Fd control, nursery_->start_keeper(folder_));
    client_.emplace(std::move(control));
    BERTH_DO(client_->list());  // then its card is there
    BERTH_TRY(const keeper::FoundKeeper found, keeper::look_at_keeper(folder_));
    pid_ = found.card.pid;
  }
  BERTH_DO(client_->renew(10min));
  BERTH_TRY(isolation_, client_->confine(origin.plan));
  return {};
}

// Its parent is this process, or the nursery.
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
  words.insert(words.begin(), hostile_inside);
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
  nursery_.reset();  // or a next sandbox would be in the network of this one
  return {};
}

}  // namespace berth::security_test
