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
#include <string_view>

namespace berth::keeper::sandbox {

// A sandbox as its keeper holds it: pid 1, and what the outside needs of the inside. Nothing of it
// is left when it is destroyed.
class Cell {
 public:
  // Makes the whole sandbox or nothing. `isolation_too_weak` when it would be weaker than the plan
  // demands. The id names its control groups; the limit is what commands get.
  static Result<std::unique_ptr<Cell>> make(const Plan& plan, std::string_view id,
                                            rlimit open_files);
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

  // Kills pid 1, and with it everything inside, and waits for the end.
  void kill();

 private:
  Cell(Cgroup cgroup) : cgroup_(std::move(cgroup)) {}
  Result<> start(const Plan& plan, rlimit open_files);

  Cgroup cgroup_;
  Confined confined_;
  Fd init_;
  Fd control_;
  Fd root_;
  Fd upper_;
  std::map<std::uint16_t, Fd> listeners_;
};

}  // namespace berth::keeper::sandbox
