#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/holder/launch.hpp"
#include "keeper/protocol/messages.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

// Every exec has a warden: a fork of the keeper that is the parent of the command and the subreaper
// of all it leaves behind. So it is always known to which exec a process belongs, killing may block
// without holding up other execs, and a tree dies even when the keeper is killed.
namespace berth::keeper {

namespace sandbox {
class Cell;
}

// From the keeper to a warden, one packet each.
struct Order {
  enum class Kind : std::uint8_t { signal, terminate, kill };
  Kind kind = Kind::signal;
  std::int32_t number = 0;  // of the signal
};

// Of all that was waited for below a warden, for one command.
struct TreeUsage {
  std::uint64_t user_us = 0;
  std::uint64_t system_us = 0;
  std::uint64_t resident_bytes_max = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t blocks_in = 0;
  std::uint64_t blocks_out = 0;
};

// From a warden to the keeper, one packet each.
struct Report {
  // One inside a sandbox starts with `waiting`, so that the keeper knows which process it is before
  // a command can stop it.
  enum class Kind : std::uint8_t { waiting, started, failed, main_ended, gone };
  Kind kind = Kind::started;
  std::int32_t pid = 0;
  Step failed_step = Step::none;
  std::int32_t failed_errno = 0;
  std::uint8_t command_exists = 0;  // where the warden looks, when it could not be executed
  std::int32_t status = 0;          // as waitpid gives it, of the command
  std::int64_t ended_us = 0;        // of the command; 0 while it has not ended
  std::uint64_t cpu_us_before = 0;  // what the warden and former commands had used at the start
  TreeUsage usage = {};
  std::uint32_t left_behind = 0;  // what could not be killed
};

struct Warden {
  pid_t pid = 0;  // 0 while a warden inside a sandbox has not said anything yet
  Fd channel;     // non-blocking, one packet per message; closed by the other side when it is gone
};

// The next report, as recv(2) says how: its size, 0 at the end, or -1 and errno. Also finds out
// which process the warden is.
ssize_t receive_report(Warden& from, Report& report);

// The other side: a warden that waits on its channel for a command, in the process that calls this.
// It is inside a sandbox, where it has no state folder to write to.
[[noreturn]] void run_waiting_warden(Fd channel, rlimit open_files);

// The wardens of one keeper. One whose tree is gone knows nothing of it any more and may watch the
// next command, which then need not wait for a fork. A keeper that is asked a second time will be
// asked again: from then on it keeps some of them.
class Wardens {
 public:
  // The open-file limit is what a command gets; the keeper raises its own.
  explicit Wardens(rlimit open_files) : open_files_(open_files) {}

  // From now on wardens are in the sandbox, which must outlive this.
  void confine(sandbox::Cell& cell);

  Result<Warden> start(const Exec& exec, ChildEnds ends);
  // One that has said that its tree is gone, or was never there.
  void take_back(Warden warden);
  // The master of a new terminal, where the wardens are.
  Result<Fd> open_terminal() const;
  // Processes of the sandbox that were killed for want of memory since the last question.
  std::uint64_t new_oom_kills() const;
  // Lets go of those that wait.
  void dismiss() { idle_.clear(); }
  // The same, and keeps none from now on.
  void retire();
  bool has_idle(pid_t pid) const;

 private:
  Result<Warden> make() const;

  sandbox::Cell* cell_ = nullptr;
  rlimit open_files_;
  std::vector<Warden> idle_;
  int started_ = 0;
  bool retired_ = false;
};

}  // namespace berth::keeper
