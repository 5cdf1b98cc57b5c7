#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/loop.hpp"
#include "keeper/holder/warden.hpp"
#include "keeper/protocol/exec_journal.hpp"
#include "keeper/protocol/messages.hpp"
#include "keeper/protocol/output.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace berth::keeper {

// One exec, from its start until its exit record is on disk. Used only by the keeper's loop.
class HeldExec {
 public:
  // State that all execs of a keeper share. It outlives them.
  struct Shared {
    Outbox& outbox;
    std::span<char> scratch;  // bytes between a pipe and the output file
    Wardens& wardens;
    ExecJournal& journal;
    bool folder_gone = false;  // if so, nothing more is written to it
    bool frozen = false;       // if so, no process reacts
  };

  // On failure the error is in the journal, nothing has run, and the same request may be repeated.
  static Result<std::unique_ptr<HeldExec>> start(const Shared& shared, Exec exec);

  // Answers the request that started it, or a repetition of that request.
  void answer_when_started(Address to);
  // Answers with the exit record, once there is one.
  void answer_when_ended(Address to);

  void write(Address to, std::string bytes);
  void close_stdin(Address to);
  void send_signal(Address to, int number);
  void resize(Address to, const Resize& size);
  // Kills the tree with SIGTERM, then with SIGKILL after the grace period. The first cause is kept;
  // the shortest grace period applies.
  void end(Outcome cause, std::uint64_t grace_ms);

  void add_to(PollSet& turn);
  void tick(BootMs now);
  // Whether something is due that frozen processes cannot do.
  bool is_due(BootMs now) const { return phase_ != Phase::gone && now >= next_time(); }
  // The processes are no longer frozen.
  void thaw(BootMs now);

  const Exec& exec() const { return exec_; }
  std::uint64_t fingerprint() const { return ended_.fingerprint; }
  std::uint64_t output_end() const { return output_.end(); }
  Listed listed() const;
  pid_t warden() const { return warden_.pid; }
  // CPU time that its warden had used before this command.
  std::uint64_t cpu_us_before() const { return cpu_us_before_; }
  // All its processes have ended and its exit record is on disk.
  bool is_over() const { return over_; }
  bool is_gone() const { return phase_ == Phase::gone; }
  // Its warden was killed, so its processes are now children of the keeper.
  bool left_orphans() const { return lost_warden_; }
  // Some of its processes may still be running.
  bool may_have_left_somebody() const { return lost_warden_ || ended_.left_behind != 0; }

 private:
  enum class Phase : std::uint8_t { starting, running, terminating, killing, gone };

  HeldExec(const Shared& shared, Exec exec);
  Result<> begin();
  Result<> open_pipes(ChildEnds& ends);
  Result<> open_terminal(ChildEnds& ends);
  void read_stream(Fd& from, Stream stream);
  void drain(Fd& from, Stream stream);
  void read_reports();
  void take(const Report& report);
  void answer_starts();
  void enqueue(std::vector<Address>& line, Address to);
  void flush_stdin();
  void refuse_writes();
  void order(Order order);
  void kill_for_warden(BootMs now);
  void take_status(const Report& report);
  void lose(std::string_view how);
  BootMs next_time() const;
  void finish();
  void record();
  int stdin_fd() const { return terminal_ ? terminal_.get() : stdin_.get(); }

  const Shared& shared_;
  Exec exec_;
  OutputWriter output_;
  Warden warden_;
  std::uint64_t cpu_us_before_ = 0;
  Fd stdin_;
  Fd stdout_;
  Fd stderr_;
  Fd terminal_;       // stdin and stdout in one, if there is one
  Fd terminal_peer_;  // kept open, so that a command that closes its terminal is not hung up

  Phase phase_ = Phase::starting;
  bool main_ended_ = false;
  bool recorded_ = false;
  bool over_ = false;
  BootMs deadline_ = never;
  BootMs kill_at_ = never;
  BootMs kill_again_at_ = never;
  bool has_killed_for_warden_ = false;
  BootMs stuck_at_ = never;
  bool lost_warden_ = false;
  BootMs record_again_at_ = never;
  Outcome cause_ = Outcome::running;  // why it is being killed, if it still ran then
  Ended ended_;

  std::string stdin_waiting_;
  std::uint64_t stdin_written_ = 0;  // since the start, to know which writes are complete
  std::uint64_t stdin_queued_ = 0;
  bool close_stdin_after_ = false;
  std::vector<std::pair<std::uint64_t, Address>> writes_;  // complete at that stdin_written_

  std::vector<Address> want_start_;
  std::vector<Address> want_end_;
};

}  // namespace berth::keeper
