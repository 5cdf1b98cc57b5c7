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
// of everything it leaves behind. So the exec of every process is known, killing may block without
// delaying other execs, and a tree is killed even when the keeper is.
namespace berth::keeper {

namespace sandbox {
class Cell;
}

// From the keeper to a warden, one packet each.
struct Order {
  enum class Kind : std::uint8_t { signal, terminate, kill };
  Kind kind = Kind::signal;
  std::int32_t number = 0;  // the signal number
};

// The resources used by everything that a warden waited for, for one command.
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
  // A warden in a sandbox starts with `waiting`, so that the keeper knows its pid before a command
  // can stop it.
  enum class Kind : std::uint8_t { waiting, started, failed, main_ended, gone };
  Kind kind = Kind::started;
  std::int32_t pid = 0;
  Step failed_step = Step::none;
  std::int32_t failed_errno = 0;
  std::uint8_t command_exists = 0;  // as the warden sees it, if it could not be executed
  std::int32_t status = 0;          // the command's, as from waitpid
  std::int64_t ended_us = 0;        // the command's end; 0 while it runs
  std::uint64_t cpu_us_before = 0;  // used by the warden and earlier commands before the start
  TreeUsage usage = {};
  std::uint32_t left_behind = 0;  // processes that could not be killed
};

struct Warden {
  pid_t pid = 0;  // 0 until a warden in a sandbox has sent its first report
  Fd channel;     // non-blocking, one packet per message; the warden's end closes with it
};

// Receives the next report. Returns as recv(2) does: its size, 0 at the end, or -1 and errno. Also
// learns the warden's pid.
ssize_t receive_report(Warden& from, Report& report);

// The other side: turns the calling process into a warden that waits on its channel for a command.
// It is in a sandbox, where it has no state folder to write to.
[[noreturn]] void run_waiting_warden(Fd channel, rlimit open_files);

// The wardens of one keeper. A warden whose tree has ended keeps no state of it and may watch the
// next command, which then need not wait for a fork. A keeper that gets a second command will get
// more: from then on it keeps some wardens.
class Wardens {
 public:
  // The open-file limit is for commands; the keeper raises its own.
  explicit Wardens(rlimit open_files) : open_files_(open_files) {}

  // From now on wardens run in the sandbox, which must outlive this object.
  void confine(sandbox::Cell& cell);

  Result<Warden> start(const Exec& exec, ChildEnds ends);
  // Takes back a warden that has reported that its tree has ended, or that never had one.
  void take_back(Warden warden);
  // The master of a new terminal, opened where the wardens run.
  Result<Fd> open_terminal() const;
  // Processes of the sandbox that the kernel killed for lack of memory since the last call.
  std::uint64_t new_oom_kills() const;
  // Ends the idle wardens.
  void dismiss() { idle_.clear(); }
  // Ends the idle wardens, and keeps none from now on.
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
