#include "keeper/holder/keeper.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/version.hpp"
#include "keeper/sandbox/user_namespaces.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

// How a keeper handles each request.
namespace berth::keeper {
namespace {

Error lost_sandbox() {
  return {Errc::process_lost, "the sandbox is gone: its first process was killed",
          "make another one"};
}

// The inode of the state folder is unique to this keeper.
std::string group_id() {
  struct stat folder{};
  return "k" + std::to_string(::stat(".", &folder) == 0 ? folder.st_ino : 0);
}

// What the kernel counts for the whole sandbox, including processes that have ended.
void count_sandbox(const sandbox::Cell& cell, Usage& usage) {
  const sandbox::CgroupUsage counted = cell.cgroup().usage();
  if (counted.cpu_user_us && counted.cpu_system_us) {
    usage.cpu_us = *counted.cpu_user_us + *counted.cpu_system_us;
  }
  usage.resident_bytes = counted.memory_bytes.value_or(usage.resident_bytes);
  usage.memory_bytes_peak = counted.memory_peak_bytes.value_or(0);
  usage.read_bytes = counted.io_read_bytes;
  usage.written_bytes = counted.io_written_bytes;
  usage.oom_kills = counted.oom_kills;
  usage.processes_peak = counted.pids_peak.value_or(0);
}

}  // namespace

template <class Message>
void Keeper::act(Session& from, const Frame& frame) {
  const Address back{.client = from.id(), .request = frame.request};
  if (!from.is_greeted() && Message::verb != Verb::hello) {
    refuse(back, {Errc::keeper_protocol, "the first message must be hello"});
    return from.close();
  }
  Result<Message> message = decode<Message>(frame);
  if (!message) {
    refuse(back, message.error());
    return from.close();
  }
  on(back, *std::move(message));
}

void Keeper::handle(Session& from, const Frame& frame) {
  switch (frame.verb) {
    case Verb::hello: return act<Hello>(from, frame);
    case Verb::exec: return act<Exec>(from, frame);
    case Verb::write: return act<Write>(from, frame);
    case Verb::close_stdin: return act<CloseStdin>(from, frame);
    case Verb::signal: return act<Signal>(from, frame);
    case Verb::resize: return act<Resize>(from, frame);
    case Verb::attach: return act<Attach>(from, frame);
    case Verb::wait: return act<Wait>(from, frame);
    case Verb::stats: return act<Stats>(from, frame);
    case Verb::renew: return act<Renew>(from, frame);
    case Verb::cancel: return act<Cancel>(from, frame);
    case Verb::stop: return act<Stop>(from, frame);
    case Verb::list: return act<List>(from, frame);
    case Verb::confine: return act<Confine>(from, frame);
    case Verb::root: return act<Root>(from, frame);
    case Verb::listener: return act<Listener>(from, frame);
    case Verb::dial: return act<Dial>(from, frame);
    case Verb::freeze: return act<Freeze>(from, frame);
    case Verb::thaw: return act<Thaw>(from, frame);
    case Verb::empty: return act<Empty>(from, frame);
    case Verb::remake: return act<Remake>(from, frame);
    default: break;
  }
  refuse({.client = from.id(), .request = frame.request},
         {Errc::keeper_protocol, "a keeper is not asked that"});
  from.close();
}

HeldExec* Keeper::live(Address to, const std::string& exec_id) {
  if (const auto found = execs_.find(exec_id); found != execs_.end()) return found->second.get();
  refuse(to, {Errc::exec_not_found, "exec " + exec_id + ": does not run here",
              "its exit record says how it ended, where there is one"});
  return nullptr;
}

void Keeper::on(Address from, const Hello& hello) {
  if (hello.version != protocol_version) {
    refuse(from, {Errc::keeper_protocol,
                  "the client speaks version " + std::to_string(hello.version) +
                      " of the protocol, this keeper version " + std::to_string(protocol_version),
                  "use the berth-keeper that came with this berth"});
    return sessions_.at(from.client)->close();
  }
  sessions_.at(from.client)->greet();
  answer(*this, from,
         Welcome{.version = protocol_version,
                 .pid = ::getpid(),
                 .program_version = std::string{version()}});
}

void Keeper::on(Address from, Exec exec) {
  if (const Result<> good = check(exec); !good) return refuse(from, good.error());
  if (is_known(exec.exec_id)) return answer_again(from, exec);
  if (stopping_) {
    return refuse(from, {Errc::keeper_stopping, "the keeper is stopping: " + end_record_.reason});
  }
  if (execs_.size() >= limits::live_execs) {
    return refuse(from, {Errc::keeper_full,
                         "the keeper holds " + std::to_string(execs_.size()) + " execs already"});
  }
  if (cell_lost_) return refuse(from, lost_sandbox());
  // A client that requested a sandbox never gets a command outside it, even if the two requests
  // were sent together.
  if (must_confine_ && !cell_) {
    return refuse(from, {Errc::sandbox_setup_failed,
                         "exec " + exec.exec_id + ": its sandbox could not be made",
                         "the answer to the request `confine` says why"});
  }
  const std::string id = exec.exec_id;
  Result<std::unique_ptr<HeldExec>> started = HeldExec::start(shared_, std::move(exec));
  if (!started) return refuse(from, started.error());
  const auto held = execs_.emplace(id, *std::move(started)).first;
  used_.insert(std::hash<std::string>{}(id));
  journal_.reserve(execs_.size());
  held->second->answer_when_started(from);
}

// The id has been used: the same request gets the same answer, and nothing runs.
void Keeper::answer_again(Address to, const Exec& exec) {
  const auto found = execs_.find(exec.exec_id);
  const Result<Ended> ended = read_exit(".", exec.exec_id);
  const std::uint64_t before = found != execs_.end() ? found->second->fingerprint()
                               : ended               ? ended->fingerprint
                                                     : 0;
  if (before != fingerprint(exec)) {
    return refuse(
        to, {Errc::exec_id_reused, "exec " + exec.exec_id + ": the id was used for another command",
             "choose a new id for every command"});
  }
  if (found != execs_.end()) return found->second->answer_when_started(to);
  if (ended->outcome == Outcome::failed_to_start) {
    return answer(
        *this, to,
        Refused{.code = ended->error_code, .message = ended->message, .remedy = ended->remedy});
  }
  answer(*this, to,
         Started{.exec_id = exec.exec_id, .pid = ended->pid, .started_us = ended->started_us});
}

void Keeper::on(Address from, Write write) {
  if (HeldExec* exec = live(from, write.exec_id)) exec->write(from, std::move(write.bytes));
}

void Keeper::on(Address from, const CloseStdin& close) {
  if (HeldExec* exec = live(from, close.exec_id)) exec->close_stdin(from);
}

void Keeper::on(Address from, const Signal& signal) {
  if (HeldExec* exec = live(from, signal.exec_id)) exec->send_signal(from, signal.number);
}

void Keeper::on(Address from, const Resize& resize) {
  if (HeldExec* exec = live(from, resize.exec_id)) exec->resize(from, resize);
}

void Keeper::on(Address from, const Attach& attach) {
  const Result<> attached = sessions_.at(from.client)->attach(from.request, attach);
  if (!attached) refuse(from, attached.error());
}

void Keeper::on(Address from, const Wait& wait) {
  const auto found = execs_.find(wait.exec_id);
  if (found != execs_.end()) return found->second->answer_when_ended(from);
  if (is_exec_id(wait.exec_id)) return answer_end(from, wait.exec_id);
  live(from, wait.exec_id);
}

void Keeper::on(Address from, const Stats& stats) {
  pid_t root = ::getpid();
  std::uint64_t cpu_us_before = 0;
  if (!stats.exec_id.empty()) {
    const HeldExec* exec = live(from, stats.exec_id);
    if (exec == nullptr) return;
    root = exec->warden();
    cpu_us_before = exec->cpu_us_before();
  }
  const auto is_ours = [this](pid_t pid, pid_t parent) {
    // In a sandbox the children of its first process are wardens.
    if (cell_ && (pid == cell_->init_pid() || parent == cell_->init_pid())) return true;
    return is_warden(pid) || pid == syncer_;
  };
  const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Usage usage;
  if (root != ::getpid()) {
    // Processes that the command waited for count towards it; its orphans count towards the warden.
    if (const auto stat = process_stat(root)) {
      const std::uint64_t all = stat->cpu_ticks * 1'000'000 / ticks_per_second;
      usage.cpu_us += all - std::min(all, cpu_us_before);
    }
  }
  for (const pid_t pid : descendants_of(root)) {
    const auto stat = process_stat(pid);
    if (!stat || is_ours(pid, stat->parent)) continue;
    usage.cpu_us += stat->cpu_ticks * 1'000'000 / ticks_per_second;
    usage.resident_bytes += stat->resident_pages * page_bytes;
    ++usage.processes;
  }
  if (cell_ && stats.exec_id.empty()) count_sandbox(*cell_, usage);
  answer(*this, from, usage);
}

void Keeper::on(Address from, const Renew& renew) {
  if (stopping_) {
    return refuse(from, {Errc::keeper_stopping, "the keeper is stopping: " + end_record_.reason});
  }
  if (renew.deadline_ms == 0 || renew.deadline_ms > limits::deadline_ms) {
    return refuse(
        from, {Errc::validation_failed, "a keeper is renewed for 1 to " +
                                            std::to_string(limits::deadline_ms) + " milliseconds"});
  }
  deadline_ = boot_ms() + static_cast<BootMs>(renew.deadline_ms);
  answer(*this, from, Done{});
}

void Keeper::on(Address from, const Cancel& cancel) {
  HeldExec* exec = live(from, cancel.exec_id);
  if (exec == nullptr) return;
  exec->answer_when_ended(from);
  if (shared_.frozen) return end_frozen(*exec, Outcome::stopped);
  exec->end(Outcome::stopped, cancel.grace_ms);
}

void Keeper::on(Address from, const Stop& stop) {
  if (want_goodbye_.size() >= limits::waiting) {
    return refuse(from, {Errc::overloaded, "too many wait for the end of the keeper"});
  }
  want_goodbye_.push_back(from);
  end_all(Outcome::stopped, "stopped by request", stop.grace_ms);
}

void Keeper::on(Address from, const List& /*list*/) {
  Listing listing;
  for (const auto& [id, exec] : execs_) listing.live.push_back(exec->listed());
  answer(*this, from, listing);
}

Result<std::unique_ptr<sandbox::Cell>> Keeper::make_cell(const sandbox::Plan& plan) {
  const auto is_last_resort = [&](const Error& error) {
    return error.code == Errc::sandbox_unavailable && ::geteuid() != 0 &&
           plan.min_level == sandbox::Level::minimal;
  };
  if (std::unique_ptr<sandbox::Cell> unborn = std::move(unborn_); unborn && unborn->suits(plan)) {
    const Result<> became = unborn->become(plan);
    if (became) return unborn;
    if (!is_last_resort(became.error())) return std::unexpected(became.error());
  }
  const std::string id = group_id();
  const sandbox::CgroupLayout layout = sandbox::detect_layout();
  BERTH_DO(note_groups(layout));
  const sandbox::Surroundings surroundings{
      .id = id, .open_files = open_files_, .command_line = command_line_, .layout = &layout};
  auto made = sandbox::Cell::make(plan, surroundings);
  if (made || !is_last_resort(made.error())) return made;
  return sandbox::Cell::make_minimal(plan, surroundings);
}

void Keeper::on(Address from, const Confine& confine) {
  if (stopping_) {
    return refuse(from, {Errc::keeper_stopping, "the keeper is stopping: " + end_record_.reason});
  }
  if (cell_ || !execs_.empty() || !used_.empty() || syncer_ != 0) {
    return refuse(from, {Errc::conflict, "the keeper has a sandbox, or has run commands without",
                         "start a keeper for every sandbox"});
  }
  must_confine_ = true;
  auto made = make_cell(confine.plan);
  if (!made) return refuse(from, made.error());
  cell_ = *std::move(made);
  plan_ = confine.plan;
  wardens_.confine(*cell_);
  answer(*this, from, cell_->confined());
}

sandbox::Cell* Keeper::cell(Address to) {
  if (cell_ && !cell_lost_ && !stopping_) return cell_.get();
  const Error none{Errc::conflict, "the keeper has no sandbox", "confine it first"};
  refuse(to, cell_lost_ ? lost_sandbox() : none);
  return nullptr;
}

void Keeper::answer_descriptor(Address to, int descriptor) {
  Fd copy{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)};
  if (!copy) return refuse(to, {Errc::overloaded, "the keeper has too many open files"});
  std::string frame;
  append_frame(frame, to.request, Descriptor{});
  const auto found = sessions_.find(to.client);
  if (found != sessions_.end()) found->second->post(frame, std::move(copy));
}

void Keeper::on(Address from, const Root& root) {
  const sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  const int part = root.part == Part::root ? made->root() : made->upper();
  if (part < 0) {
    return refuse(from, {Errc::execution_unsupported,
                         "a sandbox without namespaces has no layer that could be captured or "
                         "compared",
                         sandbox::why_no_user_namespaces().remedy});
  }
  answer_descriptor(from, part);
}

void Keeper::on(Address from, const Listener& listener) {
  sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  const Result<int> socket = made->listener(listener.port);
  if (!socket) return refuse(from, socket.error());
  answer_descriptor(from, *socket);
}

void Keeper::on(Address from, const Dial& dial) {
  const sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  const Result<Fd> socket = made->dial(dial.port, dial.family);
  if (!socket) return refuse(from, socket.error());
  answer_descriptor(from, socket->get());
}

void Keeper::on(Address from, const Freeze& /*freeze*/) {
  sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  const Result<> frozen = made->freeze();
  if (!frozen) return refuse(from, frozen.error());
  shared_.frozen = true;
  answer(*this, from, Done{});
}

void Keeper::on(Address from, const Thaw& /*thaw*/) {
  sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  const Result<> thawed = made->thaw();
  if (!thawed) return refuse(from, thawed.error());
  ending_frozen_.clear();
  thaw();
  answer(*this, from, Done{});
}

void Keeper::on(Address from, const Empty& /*empty*/) {
  begin_emptying(from, Wanted::empty);
}

void Keeper::on(Address from, const Remake& /*remake*/) {
  begin_emptying(from, Wanted::remade);
}

// Its commands end as usual, so that their outcome is known; then everything that remains is killed
// at once.
void Keeper::begin_emptying(Address from, Wanted wanted) {
  sandbox::Cell* made = cell(from);
  if (made == nullptr) return;
  if (want_empty_.size() >= limits::waiting) {
    return refuse(from, {Errc::overloaded, "too many wait for the sandbox to be empty"});
  }
  const Result<> thawed = made->thaw();  // a frozen process cannot end
  if (!thawed) return refuse(from, thawed.error());
  ending_frozen_.clear();
  thaw();
  want_empty_.push_back({from, wanted});
  for (const auto& [id, exec] : execs_) exec->end(Outcome::stopped, 0);
  if (execs_.empty()) empty_cell();
}

void Keeper::empty_cell() {
  wardens_.dismiss();
  Result<> emptied = std::unexpected(lost_sandbox());
  if (may_have_stranger_) {
    emptied = fail(Errc::process_lost,
                   "a command of the sandbox was lost, and with it what it has started",
                   "make another one");
  } else if (!cell_lost_) {
    emptied = cell_->empty();
  }
  const bool must_remake = std::ranges::any_of(
      want_empty_, [](const WantsEmpty& each) { return each.wanted == Wanted::remade; });
  if (emptied && must_remake) emptied = remake_cell();
  for (const auto& [to, wanted] : std::exchange(want_empty_, {})) {
    if (!emptied) {
      refuse(to, emptied.error());
    } else if (wanted == Wanted::remade) {
      answer(*this, to, cell_->confined());
    } else {
      answer(*this, to, Done{});
    }
  }
}

// The old sandbox is taken apart, so there is nothing to fall back to: a failure loses the sandbox.
Result<> Keeper::remake_cell() {
  const std::string id = group_id();
  const sandbox::CgroupLayout layout = sandbox::detect_layout();
  const sandbox::Surroundings surroundings{
      .id = id, .open_files = open_files_, .command_line = command_line_, .layout = &layout};
  Result<> noted = note_groups(layout);
  auto made = noted ? sandbox::Cell::remake(std::move(cell_), plan_, surroundings)
                    : std::unexpected(noted.error());
  if (!made) {
    cell_.reset();
    cell_lost_ = true;
    wardens_.retire();
    return std::unexpected(made.error());
  }
  cell_ = *std::move(made);
  wardens_.confine(*cell_);
  return {};
}

// Its execs notice it themselves: their wardens ended with it.
void Keeper::look_at_cell() {
  cell_lost_ = true;
  has_orphans_ = has_orphans_ || !cell_->has_namespaces();
  wardens_.retire();
}

}  // namespace berth::keeper
