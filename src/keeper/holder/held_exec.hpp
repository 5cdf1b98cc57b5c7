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

// One exec from its start until its exit record is on disk. Belongs to the keeper's loop.
class HeldExec {
 public:
  // What all execs of a keeper share; it outlives them.
  struct Shared {
    Outbox& outbox;
    std::span<char> scratch;  // what is read from a pipe, on its way to the file
    Wardens& wardens;
    ExecJournal& journal;
    bool folder_gone = false;  // then nothing is written to it any more
    bool frozen = false;       // then nobody obeys
  };

  // A failure has been journaled: nothing has run, and the same request may come again.
  static Result<std::unique_ptr<HeldExec>> start(const Shared& shared, Exec exec);

  // The request that started it, or the same request again.
  void answer_when_started(Address to);
  // With the exit record, when there is one.
  void answer_when_ended(Address to);

  void write(Address to, std::string bytes);
  void close_stdin(Address to);
  void send_signal(Address to, int number);
  void resize(Address to, const Resize& size);
  // Kills the tree: SIGTERM, SIGKILL after the grace. The first cause stays, the shortest grace
  // counts.
  void end(Outcome cause, std::uint64_t grace_ms);

  void add_to(PollSet& turn);
  void tick(BootMs now);
  // Whether something is to be done that nobody does who stands still.
  bool is_due(BootMs now) const { return phase_ != Phase::gone && now >= next_time(); }
  // Those who stood still may obey again.
  void thaw(BootMs now);

  const Exec& exec() const { return exec_; }
  std::uint64_t fingerprint() const { return ended_.fingerprint; }
  std::uint64_t output_end() const { return output_.end(); }
  Listed listed() const;
  pid_t warden() const { return warden_.pid; }
  // What its warden had used before this command.
  std::uint64_t cpu_us_before() const { return cpu_us_before_; }
  // Nothing of it is left, and its exit record is on disk.
  bool is_over() const { return over_; }
  bool is_gone() const { return phase_ == Phase::gone; }
  // Its warden was killed, so its processes are now children of the keeper.
  bool left_orphans() const { return lost_warden_; }
  // It is not known that nothing of it is left.
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
  Fd terminal_;       // stdin and stdout at once, when there is one
  Fd terminal_peer_;  // held, so that a command that lets go of its terminal is not hung up

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
  Outcome cause_ = Outcome::running;  // why it is being killed, if the command still ran then
  Ended ended_;

  std::string stdin_waiting_;
  std::uint64_t stdin_written_ = 0;  // since the start, to know which writes are done
  std::uint64_t stdin_queued_ = 0;
  bool close_stdin_after_ = false;
  std::vector<std::pair<std::uint64_t, Address>> writes_;  // done when that much was written

  std::vector<Address> want_start_;
  std::vector<Address> want_end_;
};

}  // namespace berth::keeper
