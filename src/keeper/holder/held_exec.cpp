#include "keeper/holder/held_exec.hpp"

#include "base/files.hpp"
#include "keeper/holder/process_tree.hpp"
#include "keeper/protocol/protocol.hpp"
#include "keeper/protocol/state_folder.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace berth::keeper {
namespace {

constexpr ssize_t first_pipe_bytes = 1 << 16;  // the default pipe size on Linux
constexpr int pipe_bytes = 1 << 20;
constexpr BootMs warden_limit_ms = 15'000;  // a warden stops trying to kill before this
constexpr BootMs warden_pause_ms = 500;     // how long a warden kills on its own
constexpr BootMs record_again_ms = 500;
// The most a pipe can hold after its last writer has ended; also bounds reading from a pipe that
// still has writers.
constexpr std::size_t drain_bytes_max = std::size_t{4} << 20;

Result<> make_pipe(Fd& read_end, Fd& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_failure("pipe", "exec", errno);
  read_end = Fd{ends[0]};
  write_end = Fd{ends[1]};
  return {};
}

}  // namespace

HeldExec::HeldExec(const Shared& shared, Exec exec)
    : shared_(shared),
      exec_(std::move(exec)),
      output_(output_file(exec_.exec_id), exec_.output_bytes_max) {
  ended_.exec_id = exec_.exec_id;
  ended_.fingerprint = keeper::fingerprint(exec_);
  if (exec_.deadline_ms != 0) deadline_ = boot_ms() + static_cast<BootMs>(exec_.deadline_ms);
}

Result<std::unique_ptr<HeldExec>> HeldExec::start(const Shared& shared, Exec exec) {
  std::unique_ptr<HeldExec> held{new HeldExec{shared, std::move(exec)}};
  BERTH_DO(held->begin());
  // The rest runs while the command is being started. Our end must never block; the command's end
  // must. O_NONBLOCK is the only flag that a new pipe or terminal needs.
  for (const Fd* end : {&held->stdin_, &held->stdout_, &held->stderr_, &held->terminal_}) {
    if (*end) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  }
  // The command's arguments and environment may be secret. Only its name and PATH are needed later,
  // to explain a failure.
  std::erase_if(held->exec_.environment,
                [](const std::string& entry) { return !entry.starts_with("PATH="); });
  held->exec_.argv.resize(1);
  held->exec_.argv.shrink_to_fit();
  held->stdin_waiting_ = std::move(held->exec_.stdin_bytes);
  held->stdin_queued_ = held->stdin_waiting_.size();
  held->close_stdin_after_ = held->exec_.stdin_kind == Stdin::bytes;
  return held;
}

Result<> HeldExec::begin() {
  ChildEnds ends;
  BERTH_DO(exec_.has_terminal() ? open_terminal(ends) : open_pipes(ends));
  ended_.started_us = wall_clock_us();
  BERTH_DO(shared_.journal.append(ended_));
  Result<Warden> warden = shared_.wardens.start(exec_, std::move(ends));
  if (!warden) {
    ended_.outcome = Outcome::failed_to_start;
    ended_.error_code = name_of(warden.error().code);
    ended_.message = warden.error().message;
    ended_.ended_us = wall_clock_us();
    BERTH_DO(shared_.journal.append(ended_));
    return std::unexpected(std::move(warden).error());
  }
  warden_ = *std::move(warden);
  return {};
}

Result<> HeldExec::open_pipes(ChildEnds& ends) {
  if (exec_.stdin_kind != Stdin::none) BERTH_DO(make_pipe(ends.in, stdin_));
  BERTH_DO(make_pipe(stdout_, ends.out));
  return make_pipe(stderr_, ends.err);
}

Result<> HeldExec::open_terminal(ChildEnds& ends) {
  BERTH_TRY(terminal_, shared_.wardens.open_terminal());
  if (::unlockpt(terminal_.get()) != 0) return io_failure("open", "terminal", errno);
  const winsize size{.ws_row = exec_.rows, .ws_col = exec_.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(terminal_.get(), TIOCSWINSZ, &size);
  for (Fd* end : {&ends.in, &ends.out, &ends.err, &terminal_peer_}) {
    *end = Fd{::ioctl(terminal_.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)};
    if (!*end) return io_failure("open", "terminal", errno);
  }
  return {};
}

Listed HeldExec::listed() const {
  return {.exec_id = exec_.exec_id,
          .pid = ended_.pid,
          .started_us = ended_.started_us,
          .output_end = output_.end()};
}

void HeldExec::answer_when_started(Address to) {
  if (phase_ == Phase::starting) {
    enqueue(want_start_, to);
  } else if (ended_.outcome == Outcome::failed_to_start) {
    answer(shared_.outbox, to,
           Refused{.code = ended_.error_code, .message = ended_.message, .remedy = ended_.remedy});
  } else {
    answer(shared_.outbox, to,
           Started{.exec_id = exec_.exec_id, .pid = ended_.pid, .started_us = ended_.started_us});
  }
}

void HeldExec::answer_when_ended(Address to) {
  if (recorded_) {
    answer(shared_.outbox, to, ended_);
  } else {
    enqueue(want_end_, to);
  }
}

void HeldExec::enqueue(std::vector<Address>& line, Address to) {
  if (line.size() < limits::waiting) return line.push_back(to);
  answer(shared_.outbox, to,
         as_refused({Errc::overloaded, "exec " + exec_.exec_id + ": too many wait for it"}));
}

void HeldExec::write(Address to, std::string bytes) {
  if (stdin_fd() < 0 || close_stdin_after_) {
    return answer(shared_.outbox, to,
                  as_refused({Errc::conflict, "exec " + exec_.exec_id + ": stdin is closed"}));
  }
  if (stdin_waiting_.size() + bytes.size() > limits::stdin_bytes ||
      writes_.size() >= limits::waiting) {
    return answer(
        shared_.outbox, to,
        as_refused({Errc::overloaded, "exec " + exec_.exec_id + ": stdin is not read fast enough",
                    "wait for the answer to a write before the next one"}));
  }
  stdin_queued_ += bytes.size();
  stdin_waiting_ += bytes;
  writes_.emplace_back(stdin_queued_, to);
  flush_stdin();
}

void HeldExec::close_stdin(Address to) {
  answer(shared_.outbox, to, Done{});
  if (stdin_fd() < 0 || close_stdin_after_) return;
  if (terminal_) {
    stdin_waiting_ += '\x04';  // end of input, to a terminal
    ++stdin_queued_;
  } else {
    close_stdin_after_ = true;
  }
  flush_stdin();
}

void HeldExec::flush_stdin() {
  while (!stdin_waiting_.empty() && stdin_fd() >= 0) {
    const ssize_t wrote = ::write(stdin_fd(), stdin_waiting_.data(), stdin_waiting_.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) break;
    if (wrote < 0) return refuse_writes();
    stdin_written_ += static_cast<std::uint64_t>(wrote);
    stdin_waiting_.erase(0, static_cast<std::size_t>(wrote));
  }
  while (!writes_.empty() && writes_.front().first <= stdin_written_) {
    answer(shared_.outbox, writes_.front().second, Done{});
    writes_.erase(writes_.begin());
  }
  if (!stdin_waiting_.empty()) return;
  stdin_waiting_.shrink_to_fit();
  if (close_stdin_after_) stdin_ = Fd{};
}

// The command has closed its stdin or has ended.
void HeldExec::refuse_writes() {
  for (const auto& [until, to] : writes_) {
    answer(shared_.outbox, to,
           as_refused({Errc::conflict, "exec " + exec_.exec_id + ": stdin is no longer read"}));
  }
  writes_.clear();
  stdin_waiting_ = {};
  stdin_ = Fd{};
}

void HeldExec::send_signal(Address to, int number) {
  if (number < 1 || number >= NSIG) {
    return answer(
        shared_.outbox, to,
        as_refused({Errc::validation_failed,
                    "exec " + exec_.exec_id + ": there is no signal " + std::to_string(number)}));
  }
  order({.kind = Order::Kind::signal, .number = number});
  answer(shared_.outbox, to, Done{});
}

void HeldExec::resize(Address to, const Resize& size) {
  const winsize window{.ws_row = size.rows, .ws_col = size.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (!terminal_ || ::ioctl(terminal_.get(), TIOCSWINSZ, &window) != 0) {
    return answer(shared_.outbox, to,
                  as_refused({Errc::conflict, "exec " + exec_.exec_id + ": has no terminal"}));
  }
  answer(shared_.outbox, to, Done{});
}

void HeldExec::order(Order order) {
  if (!warden_.channel) return;
  // A process in the sandbox may have stopped the warden.
  if (warden_.pid > 0) ::kill(warden_.pid, SIGCONT);
  // A warden that accepts no more orders is stuck; tick() detects that.
  ::send(warden_.channel.get(), &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void HeldExec::end(Outcome cause, std::uint64_t grace_ms) {
  if (phase_ == Phase::gone) return;
  if (cause_ == Outcome::running && !main_ended_) cause_ = cause;
  const BootMs kill_at = boot_ms() + static_cast<BootMs>(std::min(grace_ms, limits::grace_ms));
  kill_at_ = std::min(kill_at_, kill_at);
  if (phase_ == Phase::starting || phase_ == Phase::running) {
    phase_ = Phase::terminating;
    order({.kind = Order::Kind::terminate});
  }
  tick(boot_ms());
}

void HeldExec::tick(BootMs now) {
  if (now >= record_again_at_) record();
  if (phase_ == Phase::gone || shared_.frozen) return;
  if (now >= deadline_) {
    deadline_ = never;
    end(Outcome::timed_out, exec_.grace_ms);
  }
  if (phase_ == Phase::terminating && now >= kill_at_) {
    phase_ = Phase::killing;
    stuck_at_ = now + warden_limit_ms;
    kill_again_at_ = now + warden_pause_ms;
    order({.kind = Order::Kind::kill});
  }
  if (phase_ == Phase::killing && now >= kill_again_at_) kill_for_warden(now);
  if (phase_ == Phase::killing && now >= stuck_at_) {
    // The warden does not finish. Once it is killed, its tree becomes the keeper's.
    stuck_at_ = now + warden_limit_ms;
    if (warden_.pid > 0) ::kill(warden_.pid, SIGKILL);
  }
}

// Every process in a sandbox has the wardens' ids, so it can stop a warden again and again. It
// cannot stop the keeper, which therefore kills the tree and resumes the warden. A warden that is
// then stopped again is being stopped by a process outside its tree.
void HeldExec::kill_for_warden(BootMs now) {
  kill_again_at_ = now + warden_pause_ms;
  if (warden_.pid <= 0) return;
  stop_descendants_of(warden_.pid);
  for (const pid_t pid : descendants_of(warden_.pid)) ::kill(pid, SIGKILL);
  const auto stat = process_stat(warden_.pid);
  const bool is_stopped = stat && (stat->state == 'T' || stat->state == 't');
  const bool is_hopeless = std::exchange(has_killed_for_warden_, true) && is_stopped;
  ::kill(warden_.pid, is_hopeless ? SIGKILL : SIGCONT);
}

BootMs HeldExec::next_time() const {
  return std::min({deadline_, phase_ == Phase::terminating ? kill_at_ : never,
                   phase_ == Phase::killing ? std::min(kill_again_at_, stuck_at_) : never});
}

void HeldExec::thaw(BootMs now) {
  if (phase_ != Phase::killing) return;
  stuck_at_ = now + warden_limit_ms;
  kill_again_at_ = now + warden_pause_ms;
}

void HeldExec::add_to(PollSet& turn) {
  turn.wake_by(record_again_at_);
  if (phase_ == Phase::gone) return;
  turn.wake_by(next_time());
  turn.watch(warden_.channel.get(), POLLIN, [this](short) { read_reports(); });
  if (stdout_)
    turn.watch(stdout_.get(), POLLIN, [this](short) { read_stream(stdout_, Stream::out); });
  if (stderr_)
    turn.watch(stderr_.get(), POLLIN, [this](short) { read_stream(stderr_, Stream::err); });
  if (terminal_) {
    turn.watch(terminal_.get(), POLLIN, [this](short) { read_stream(terminal_, Stream::out); });
  }
  if (stdin_fd() >= 0 && (!stdin_waiting_.empty() || close_stdin_after_)) {
    turn.watch(stdin_fd(), POLLOUT, [this](short) { flush_stdin(); });
  }
}

void HeldExec::read_stream(Fd& from, Stream stream) {
  if (!from) return;
  const ssize_t got = ::read(from.get(), shared_.scratch.data(), shared_.scratch.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {  // a terminal without processes returns EIO
    from = Fd{};
    return;
  }
  // A command that fills its pipe gets a larger one if the user's quota allows it.
  if (got == first_pipe_bytes) ::fcntl(from.get(), F_SETPIPE_SZ, pipe_bytes);
  output_.append(stream, {shared_.scratch.data(), static_cast<std::size_t>(got)}, wall_clock_us());
}

void HeldExec::drain(Fd& from, Stream stream) {
  const std::uint64_t before = output_.counts().out + output_.counts().err;
  while (from) {
    const std::uint64_t seen = output_.counts().out + output_.counts().err;
    read_stream(from, stream);
    const std::uint64_t now = output_.counts().out + output_.counts().err;
    if (now == seen || now - before > drain_bytes_max) break;
  }
}

void HeldExec::read_reports() {
  bool reset = false;
  while (phase_ != Phase::gone) {
    Report report;
    const ssize_t got = receive_report(warden_, report);
    if (got < 0 && errno == EINTR) continue;
    // A warden that ended with an unread order resets the channel. The kernel reports that once,
    // before the reports that the warden had sent, which still have to be read.
    if (got < 0 && errno == ECONNRESET && !std::exchange(reset, true)) continue;
    if (got < 0 && errno == EAGAIN && !reset) return;
    if (got == sizeof report) {
      take(report);
      continue;
    }
    lost_warden_ = true;
    if (!main_ended_) lose("the process that watched the command was killed");
    phase_ = Phase::gone;
    warden_.channel = Fd{};
    answer_starts();  // before the clients that wait for the end
    finish();
  }
}

void HeldExec::answer_starts() {
  for (const Address& to : std::exchange(want_start_, {})) answer_when_started(to);
}

void HeldExec::take(const Report& report) {
  switch (report.kind) {
    case Report::Kind::waiting: return;
    case Report::Kind::started:
      ended_.pid = report.pid;
      cpu_us_before_ = report.cpu_us_before;
      if (phase_ == Phase::starting) phase_ = Phase::running;
      break;
    case Report::Kind::failed: {
      const Error error = explain(exec_, {.step = report.failed_step,
                                          .error_number = report.failed_errno,
                                          .command_exists = report.command_exists != 0});
      ended_.outcome = Outcome::failed_to_start;
      ended_.failed_step = report.failed_step;
      ended_.failed_errno = report.failed_errno;
      ended_.error_code = name_of(error.code);
      ended_.message = error.message;
      ended_.remedy = error.remedy;
      ended_.ended_us = wall_clock_us();
      finish();
      shared_.wardens.take_back(std::move(warden_));
      break;
    }
    case Report::Kind::main_ended:
      take_status(report);
      if (exec_.leftovers == Leftovers::kill) {
        end(Outcome::stopped, exec_.grace_ms);
      } else {
        drain(stdout_, Stream::out);
        drain(stderr_, Stream::err);
        record();
      }
      break;
    case Report::Kind::gone:
      if (!main_ended_ && report.ended_us != 0) take_status(report);
      if (!main_ended_) lose("the command could not be killed");
      ended_.left_behind = report.left_behind;
      ended_.user_us = report.usage.user_us;
      ended_.system_us = report.usage.system_us;
      ended_.resident_bytes_max = report.usage.resident_bytes_max;
      ended_.major_faults = report.usage.major_faults;
      ended_.blocks_in = report.usage.blocks_in;
      ended_.blocks_out = report.usage.blocks_out;
      finish();
      if (report.left_behind == 0) shared_.wardens.take_back(std::move(warden_));
      break;
  }
  answer_starts();
}

// How the command ended is unknown; why it was being ended may be known.
void HeldExec::lose(std::string_view how) {
  ended_.outcome = cause_ != Outcome::running ? cause_ : Outcome::lost;
  ended_.message = how;
  ended_.ended_us = wall_clock_us();
}

void HeldExec::take_status(const Report& report) {
  main_ended_ = true;
  ended_.ended_us = report.ended_us;
  if (WIFSIGNALED(report.status)) {
    ended_.signal = WTERMSIG(report.status);
    ended_.dumped_core = WCOREDUMP(report.status) ? 1 : 0;
    ended_.outcome = Outcome::signaled;
  } else {
    ended_.code = WEXITSTATUS(report.status);
    ended_.outcome = Outcome::exited;
  }
  if (cause_ != Outcome::running) ended_.outcome = cause_;
  ended_.oom_kills = shared_.wardens.new_oom_kills();
  if (ended_.oom_kills == 0 || ended_.outcome != Outcome::signaled) return;
  ended_.error_code = name_of(Errc::out_of_memory);
  ended_.message = "exec " + exec_.exec_id + ": was killed, because its sandbox ran out of memory";
  ended_.remedy = "raise the sandbox's limit of memory";
}

void HeldExec::finish() {
  phase_ = Phase::gone;
  drain(stdout_, Stream::out);
  drain(stderr_, Stream::err);
  drain(terminal_, Stream::out);
  stdout_ = Fd{};
  stderr_ = Fd{};
  terminal_ = Fd{};
  terminal_peer_ = Fd{};
  refuse_writes();
  record();
}

// If the disk does not accept the record, the exec is kept and the write is retried. Waiting
// clients are answered at once.
void HeldExec::record() {
  output_.finish(wall_clock_us());
  ended_.stdout_bytes = output_.counts().out;
  ended_.stderr_bytes = output_.counts().err;
  ended_.bytes_over_limit = output_.counts().over_limit;
  ended_.bytes_lost = output_.counts().lost;
  ended_.output_end = output_.end();
  const bool written = shared_.folder_gone || shared_.journal.append(ended_).has_value();
  record_again_at_ = written ? never : boot_ms() + record_again_ms;
  over_ = written && phase_ == Phase::gone;
  recorded_ = true;
  for (const Address& to : std::exchange(want_end_, {})) answer(shared_.outbox, to, ended_);
}

}  // namespace berth::keeper
