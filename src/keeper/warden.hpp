#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/launch.hpp"
#include "keeper/messages.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

// Every exec has a warden: a fork of the keeper that is the parent of the command and the subreaper
// of all it leaves behind. So it is always known to which exec a process belongs, killing may block
// without holding up other execs, and a tree dies even when the keeper is killed.
namespace berth::keeper {

// From the keeper to a warden, one packet each.
struct Order {
  enum class Kind : std::uint8_t { signal, terminate, kill };
  Kind kind = Kind::signal;
  std::int32_t number = 0;  // of the signal
};

// From a warden to the keeper, one packet each.
struct Report {
  enum class Kind : std::uint8_t { started, failed, main_ended, gone };
  Kind kind = Kind::started;
  std::int32_t pid = 0;
  Step failed_step = Step::none;
  std::int32_t failed_errno = 0;
  std::int32_t status = 0;  // as waitpid gives it, of the command
  std::int64_t ended_us = 0;
  rusage usage = {};              // of all that was waited for below the warden
  std::uint32_t left_behind = 0;  // what could not be killed
};

// The child's ends of what it reads and writes.
struct ChildEnds {
  Fd in;
  Fd out;
  Fd err;
};

struct Warden {
  pid_t pid = 0;
  Fd channel;  // non-blocking, one packet per message; closed by the other side when it is gone
};

// The wardens of one keeper. A keeper that is asked a second time will be asked again, so from then
// on a spare one waits for the next command, which need not wait for a fork.
class Wardens {
 public:
  // The open-file limit is what a command gets; the keeper raises its own.
  explicit Wardens(rlimit open_files) : open_files_(open_files) {}

  Result<Warden> start(const Exec& exec, ChildEnds ends);
  // Makes the spare warden where one is due; called when nobody waits.
  void prepare();
  void dismiss_spare() { spare_ = {}; }
  bool is_spare(pid_t pid) const { return spare_.channel && spare_.pid == pid; }

 private:
  rlimit open_files_;
  Warden spare_;
  int started_ = 0;
};

}  // namespace berth::keeper
