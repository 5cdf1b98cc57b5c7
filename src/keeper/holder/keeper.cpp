#include "keeper/holder/keeper.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/holder/signals.hpp"
#include "keeper/protocol/text_record.hpp"
#include "keeper/protocol/version.hpp"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <utility>

namespace berth::keeper {
namespace {

constexpr std::size_t scratch_bytes = std::size_t{256} << 10;
constexpr std::uint64_t signal_grace_ms = 5000;
constexpr BootMs orphan_pause_ms = 20;
constexpr BootMs sync_pause_ms = 5000;
constexpr BootMs sync_again_ms = 1000;
constexpr BootMs goodbye_limit_ms = 10'000;
constexpr std::array taken_signals{SIGCHLD, SIGTERM, SIGINT};

// The keeper needs many descriptors itself. A command gets the limit that the keeper started with.
rlimit raise_open_files() {
  rlimit found{};
  ::getrlimit(RLIMIT_NOFILE, &found);
  const rlimit raised{.rlim_cur = found.rlim_max, .rlim_max = found.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return found;
}

bool is_our_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

void sync_path(const char* path) {
  const Fd file{::open(path, O_RDONLY | O_CLOEXEC)};
  if (file) ::fsync(file.get());
}

}  // namespace

rlimit prepare_to_hold() {
  ::umask(077);
  // Commands run as the same user. They must not read this memory, which has held secrets.
  ::prctl(PR_SET_DUMPABLE, 0);
  set_default_signals();
  for (const int number : ignored_signals) ::signal(number, SIG_IGN);
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : taken_signals) ::sigaddset(&taken, number);
  ::sigprocmask(SIG_BLOCK, &taken, nullptr);
  return raise_open_files();
}

Keeper::Keeper(Origin origin)
    : identity_(std::move(origin.identity)),
      // Not cleared: if a keeper never sees large output, these pages are never allocated.
      scratch_(std::make_unique_for_overwrite<char[]>(scratch_bytes)),
      open_files_(origin.open_files),
      command_line_(origin.command_line),
      unborn_(std::move(origin.unborn)),
      wardens_(origin.open_files),
      shared_{.outbox = *this,
              .scratch = {scratch_.get(), scratch_bytes},
              .wardens = wardens_,
              .journal = journal_},
      deadline_(boot_ms() + static_cast<BootMs>(limits::first_deadline_ms)) {}

Result<std::unique_ptr<Keeper>> Keeper::open(const std::string& folder, Fd first_client,
                                             Origin origin) {
  if (::chdir(folder.c_str()) != 0) return io_failure("enter", folder, errno);
  if (::access(card_file, F_OK) == 0) {
    return fail(Errc::conflict, folder + ": is or was the folder of another keeper",
                "give every keeper a folder of its own");
  }
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return io_failure("subreaper", folder, errno);
  std::unique_ptr<Keeper> keeper{new Keeper{std::move(origin)}};
  sigset_t taken;
  ::sigemptyset(&taken);
  for (const int number : taken_signals) ::sigaddset(&taken, number);
  keeper->signals_ = Fd{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!keeper->signals_) return io_failure("signalfd", folder, errno);

  BERTH_DO(keeper->listen());
  keeper->identity_.version = version();
  keeper->identity_.created_us = wall_clock_us();
  BERTH_DO(Draft{card_file}.publish(to_text(keeper->identity_)));
  BERTH_DO(keeper->watch_folder());
  if (first_client) keeper->add_client(std::move(first_client));
  return keeper;
}

Result<> Keeper::listen() {
  listener_ = Fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!listener_) return io_failure("socket", socket_file, errno);
  // The socket is the lock: a second keeper in the same folder cannot bind it. A name relative to
  // the current directory fits into the address however deep the folder is.
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::copy_n(socket_file, std::char_traits<char>::length(socket_file), address.sun_path);
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    if (errno == EADDRINUSE) return fail(Errc::conflict, "the state folder has a keeper already");
    return io_failure("bind", socket_file, errno);
  }
  if (::listen(listener_.get(), 16) != 0) return io_failure("listen", socket_file, errno);
  return {};
}

// Recorded before the groups are created. A keeper forked with a sandbox has them in its record
// already.
Result<> Keeper::note_groups(const sandbox::CgroupLayout& layout) {
  std::string note = note_of(layout);
  if (note == identity_.groups_in) return {};
  identity_.groups_in = std::move(note);
  return Draft{card_file}.publish(to_text(identity_));
}

Result<> Keeper::watch_folder() {
  folder_changes_ = Fd{::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)};
  // Without inotify, whose instances are limited per user, the folder is polled.
  if (folder_changes_) {
    ::inotify_add_watch(folder_changes_.get(), ".", IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF);
  }
  return {};
}

void Keeper::add_client(Fd socket) {
  const std::uint64_t id = next_client_++;
  sessions_.emplace(id, std::make_unique<Session>(id, std::move(socket), *this,
                                                  std::span{scratch_.get(), scratch_bytes}));
}

void Keeper::accept() {
  Fd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (!socket || sessions_.size() >= limits::clients || !is_our_user(socket.get())) return;
  add_client(std::move(socket));
}

void Keeper::take_signals() {
  signalfd_siginfo signal{};
  while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo == SIGCHLD) continue;
    end_all(Outcome::stopped, "signal " + std::to_string(signal.ssi_signo), signal_grace_ms);
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == syncer_) syncer_ = 0;
  }
}

void Keeper::look_at_folder() {
  std::array<char, 4096> events{};
  while (folder_changes_ && ::read(folder_changes_.get(), events.data(), events.size()) > 0) {
  }
  struct stat identity{};
  if (::stat(card_file, &identity) == 0 || stopping_) return;
  shared_.folder_gone = true;
  end_all(Outcome::stopped, "the state folder was removed", 0);
}

void Keeper::run() {
  BootMs give_up_at = never;
  bool reserved = false;
  while (true) {
    turn();
    // Done while the first command, which came with the first client, is being started.
    if (!std::exchange(reserved, true)) goodbye_.reserve();
    const bool all_gone =
        std::ranges::all_of(execs_, [](const auto& entry) { return entry.second->is_gone(); });
    if (!stopping_ || !all_gone) continue;
    // Processes that the wardens could not end are killed with the sandbox.
    if (cell_) cell_->kill();
    // Checked once more when nothing is held, whatever is known: a warden that has reported its end
    // may still be exiting, and must not be counted as left behind.
    if (execs_.empty()) {
      take_signals();
      kill_orphans();
      if (!has_orphans_) break;
    }
    // The keeper does not wait forever for a disk that refuses a record, or for a process that
    // cannot be killed.
    if (give_up_at == never) give_up_at = boot_ms() + goodbye_limit_ms;
    if (boot_ms() >= give_up_at) break;
  }
  say_goodbye();
}

void Keeper::turn() {
  PollSet set;
  set.watch(signals_.get(), POLLIN, [this](short) { take_signals(); });
  set.watch(listener_.get(), POLLIN, [this](short) { accept(); });
  if (folder_changes_) {
    set.watch(folder_changes_.get(), POLLIN, [this](short) { look_at_folder(); });
  }
  if (cell_ && cell_->init_handle() >= 0 && !cell_lost_) {
    set.watch(cell_->init_handle(), POLLIN, [this](short) { look_at_cell(); });
  }
  set.wake_by(std::min(deadline_, syncer_ == 0 ? sync_at_ : never));
  if (has_orphans_) set.wake_by(boot_ms() + orphan_pause_ms);
  for (const auto& [id, exec] : execs_) exec->add_to(set);
  for (const auto& [id, session] : sessions_) session->add_to(set);
  set.run();

  const BootMs now = boot_ms();
  if (now >= deadline_) {
    deadline_ = never;
    end_all(Outcome::lapsed, "the keeper was not renewed in time", signal_grace_ms);
  }
  for (const auto& [id, exec] : execs_) {
    if (shared_.frozen && exec->is_due(now)) end_frozen(*exec, Outcome::timed_out);
    exec->tick(now);
  }
  bury();
  if (!want_empty_.empty() && execs_.empty()) empty_cell();
  if (!ending_frozen_.empty()) freeze_again();
  if (has_orphans_) kill_orphans();
  if (now >= sync_at_) start_sync();
  if (!folder_changes_) look_at_folder();
  for (const auto& [id, session] : sessions_) session->pump();
  std::erase_if(sessions_, [](const auto& entry) { return entry.second->is_closed(); });
}

// A frozen process cannot end, so the whole sandbox is thawed until this exec has been killed.
void Keeper::end_frozen(HeldExec& exec, Outcome cause) {
  if (!cell_->thaw()) cell_->kill();
  thaw();
  ending_frozen_.insert(exec.exec().exec_id);
  exec.end(cause, 0);
}

void Keeper::freeze_again() {
  std::erase_if(ending_frozen_, [this](const std::string& id) { return !execs_.contains(id); });
  if (!ending_frozen_.empty() || stopping_ || cell_lost_) return;
  shared_.frozen = cell_->freeze().has_value();
}

void Keeper::thaw() {
  shared_.frozen = false;
  for (const auto& [id, exec] : execs_) exec->thaw(boot_ms());
}

// An exec that is over remains only in its files.
void Keeper::bury() {
  for (auto at = execs_.begin(); at != execs_.end();) {
    if (!at->second->is_over()) {
      ++at;
      continue;
    }
    has_orphans_ = has_orphans_ || at->second->left_orphans();
    may_have_stranger_ = may_have_stranger_ || at->second->may_have_left_somebody();
    has_unsynced_ = true;
    sync_at_ = std::min(sync_at_, boot_ms() + sync_pause_ms);
    at = execs_.erase(at);
  }
}

// What a killed process has written is not lost; only a power cut loses it. So neither an exec nor
// the loop waits for the disk. A child process syncs everything that has ended meanwhile.
void Keeper::start_sync() {
  if (syncer_ != 0) return;  // the next sync starts when this one ends
  sync_at_ = never;
  syncer_ = ::fork();
  if (syncer_ == 0) {
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    sync_records();
    ::_exit(0);
  }
  if (syncer_ < 0) {
    syncer_ = 0;
    sync_at_ = boot_ms() + sync_again_ms;
    return;
  }
  has_unsynced_ = false;
}

void Keeper::sync_records() const {
  if (has_unsynced_) sync_path(journal_file);
  sync_path(".");
}

bool Keeper::is_warden(pid_t pid) const {
  const auto is_of = [pid](const auto& exec) { return exec.second->warden() == pid; };
  return wardens_.has_idle(pid) || std::ranges::any_of(execs_, is_of);
}

// The orphans of a killed warden become children of the keeper.
void Keeper::kill_orphans() {
  has_orphans_ = false;
  if (!has_children()) return;
  for (const pid_t pid : descendants_of(::getpid())) {
    const auto stat = process_stat(pid);
    if (!stat || stat->parent != ::getpid() || is_warden(pid) || pid == syncer_) continue;
    if (cell_ && pid == cell_->init_pid()) continue;
    if (unborn_ && pid == unborn_->init_pid()) continue;
    has_orphans_ = true;
    for (const pid_t below : descendants_of(pid)) ::kill(below, SIGKILL);
    ::kill(pid, SIGKILL);
  }
  take_signals();
}

void Keeper::end_all(Outcome cause, std::string reason, std::uint64_t grace_ms) {
  if (!std::exchange(stopping_, true)) {
    end_record_.outcome = cause;
    end_record_.reason = std::move(reason);
    wardens_.retire();
    unborn_.reset();
    // Thawed so that the wardens can end their trees. If that fails, everything is killed at once.
    if (cell_ && !cell_->thaw()) cell_->kill();
    thaw();
  }
  for (const auto& [id, exec] : execs_) exec->end(cause, grace_ms);
}

void Keeper::say_goodbye() {
  end_record_.ended_us = wall_clock_us();
  if (has_children()) {
    end_record_.left_behind = static_cast<std::uint32_t>(std::ranges::count_if(
        descendants_of(::getpid()), [&](pid_t pid) { return pid != syncer_; }));
  }
  Result<> written = fail(Errc::io_failed, "the state folder was removed");
  if (!shared_.folder_gone) written = goodbye_.publish(to_text(end_record_));
  ::unlink(socket_file);
  for (const Address& to : want_goodbye_) {
    if (written) answer(*this, to, Done{});
    if (!written) refuse(to, written.error());
  }
  // A client that requested the stop has its response, and removes the folder.
  if (want_goodbye_.empty()) {
    sync_records();
    sync_path(ended_file);
  }
  if (syncer_ != 0) ::waitpid(syncer_, nullptr, 0);
}

void Keeper::deliver(std::uint64_t client, std::string frame) {
  const auto found = sessions_.find(client);
  if (found != sessions_.end() && !found->second->is_closed()) found->second->post(frame);
}

bool Keeper::is_known(const std::string& exec_id) const {
  if (execs_.contains(exec_id)) return true;
  if (!used_.contains(std::hash<std::string>{}(exec_id))) return false;
  const Result<std::optional<Ended>> found = find_exec(".", exec_id);
  return found && found->has_value();
}

void Keeper::answer_end(Address to, const std::string& exec_id) {
  const Result<Ended> ended = read_exit(".", exec_id);
  if (ended) return answer(*this, to, *ended);
  refuse(to, ended.error());
}

}  // namespace berth::keeper
