#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/messages.hpp"
#include "keeper/sandbox/cgroup.hpp"
#include "keeper/sandbox/plan.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>

namespace berth::keeper::sandbox {

// What a new sandbox takes over from its keeper.
struct Surroundings {
  std::string_view id;           // names its control groups
  rlimit open_files;             // what commands get
  std::span<char> command_line;  // of the keeper: pid 1 shows its own name there
};

// A sandbox as its keeper holds it: pid 1, and what the outside needs of the inside. Nothing of it
// is left when it is destroyed.
class Cell {
 public:
  // Makes the whole sandbox or nothing. `isolation_too_weak` when it would be weaker than the plan
  // demands.
  static Result<std::unique_ptr<Cell>> make(const Plan& plan, const Surroundings& surroundings);
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  const Confined& confined() const { return confined_; }
  pid_t init_pid() const { return confined_.init_pid; }
  // Readable when pid 1 is gone.
  int init_handle() const { return init_.get(); }

  // A warden inside that waits for a command on the other end of this channel.
  Result<> start_warden(int channel) const;
  // The master of a new terminal in the sandbox's own /dev/pts.
  Result<Fd> open_terminal() const;
  // A socket that listens on 127.0.0.1 inside: the same one for the same port.
  Result<int> listener(std::uint16_t port);
  int root() const { return root_.get(); }
  int upper() const { return upper_.get(); }
  const Cgroup& cgroup() const { return cgroup_; }
  // Processes killed for want of memory since the last question, where memory is limited.
  std::uint64_t new_oom_kills();

  // All processes stand still until thaw(), which does nothing when they do not.
  Result<> freeze();
  Result<> thaw();
  // Kills pid 1, and with it everything inside, and waits for the end.
  void kill();

 private:
  explicit Cell(Cgroup cgroup) : cgroup_(std::move(cgroup)) {}
  Result<> start(const Plan& plan, const Surroundings& surroundings);
  Result<Fd> ask_listener(std::uint16_t port) const;

  Cgroup cgroup_;
  Confined confined_;
  Fd init_;
  Fd control_;
  Fd root_;
  Fd upper_;
  std::map<std::uint16_t, Fd> listeners_;
  bool frozen_ = false;
  bool counts_oom_ = false;
  std::uint64_t oom_kills_ = 0;
};

}  // namespace berth::keeper::sandbox
