#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"
#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace berth::keeper::sandbox {

// What a new sandbox takes over from its keeper.
struct Surroundings {
  std::string_view id;           // names its control groups
  rlimit open_files;             // what commands get
  std::span<char> command_line;  // of the keeper: pid 1 shows its own name there
  // A network namespace that is as good as new, to be used instead of making one; -1: none.
  int network_namespace = -1;
  const CgroupLayout* layout = nullptr;  // where that is known already
};

// What has to be known of a sandbox before it can be conceived.
struct Kind {
  Network network = Network::own;
  std::uint32_t first_id = 0;  // of its range; 0: one that no other keeper's sandbox has
  friend bool operator==(const Kind&, const Kind&) = default;
};
Kind kind_of(const Plan& plan);

// A sandbox as its keeper holds it: pid 1, and what the outside needs of the inside. Nothing of it
// is left when it is destroyed.
class Cell {
 public:
  // Makes the whole sandbox or nothing. `isolation_too_weak` when it would be weaker than the plan
  // demands.
  static Result<std::unique_ptr<Cell>> make(const Plan& plan, const Surroundings& surroundings);
  // The same in two steps. First what takes longest and needs no plan: control groups, namespaces,
  // and the process that will be pid 1 and waits for the plan.
  static Result<std::unique_ptr<Cell>> conceive(const Kind& kind, const Surroundings& surroundings);
  // Another one of the same plan in the place of one that is empty. Of the files of that one only
  // the plan's kept folder is in it; that one has ended, also after a failure.
  static Result<std::unique_ptr<Cell>> remake(std::unique_ptr<Cell> former, const Plan& plan,
                                              const Surroundings& surroundings);
  // The weakest that is still one, for where an ordinary user can have no namespaces: commands are
  // the keeper's own user and see the host's paths, behind Landlock and filters of system calls.
  // What they write lies in `box_folder` of the current directory. Only for a plan that accepts
  // the level `minimal`.
  static Result<std::unique_ptr<Cell>> make_minimal(const Plan& plan,
                                                    const Surroundings& surroundings);
  // Whether it can become what the plan says.
  bool suits(const Plan& plan) const;
  // Once. After a failure it is to be destroyed.
  Result<> become(const Plan& plan, Fd tray = {});
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  const Confined& confined() const { return confined_; }
  pid_t init_pid() const { return confined_.init_pid; }
  // Without, nobody ends with pid 1 but itself.
  bool has_namespaces() const { return has_namespaces_; }
  // Readable when pid 1 is gone.
  int init_handle() const { return init_.get(); }

  // A warden inside that waits for a command on the other end of this channel.
  Result<> start_warden(int channel) const;
  // The master of a new terminal in the sandbox's own /dev/pts.
  Result<Fd> open_terminal() const;
  // A socket that listens on 127.0.0.1 inside: the same one for the same port.
  Result<int> listener(std::uint16_t port);
  // A socket that is being connected to a port of the loopback inside. `execution_unsupported`
  // where the loopback is the host's own: a sandbox is no way to the services of the machine.
  Result<Fd> dial(std::uint16_t port, LoopbackFamily family) const;
  int root() const { return root_.get(); }
  // -1 where what is written has no layer of its own.
  int upper() const { return upper_.get(); }
  const Cgroup& cgroup() const { return cgroup_; }
  // Processes killed for want of memory since the last question, where memory is limited.
  std::uint64_t new_oom_kills();

  // All processes stand still until thaw(), which does nothing when they do not.
  Result<> freeze();
  Result<> thaw();
  // Kills everybody but pid 1, and waits until that is alone. What it has open stays.
  Result<> empty();
  // Kills pid 1, and with it everything inside, and waits for the end.
  void kill();
  // Whether it has been seen that nobody inside is left.
  bool is_empty() const { return empty_; }

 private:
  Cell(const Kind& kind, Cgroup cgroup) : kind_(kind), cgroup_(std::move(cgroup)) {}
  Result<> start(const Surroundings& surroundings);
  Result<> start_minimal(const Plan& plan, const Surroundings& surroundings);
  // Pid 1's answer, with what came along.
  struct Answer {
    InitReply reply = {};
    std::vector<Fd> passed = {};
  };
  Result<Answer> ask(const InitRequest& request, int limit_ms) const;
  Result<Fd> ask_socket(const InitRequest& request) const;

  Kind kind_;
  std::uint32_t first_id_ = 0;  // 0: it has the keeper's id only
  Cgroup cgroup_;
  UserNamespace ids_;
  Confined confined_;
  Fd init_;
  Fd control_;
  Fd root_;
  Fd upper_;
  Fd tray_;  // where the plan keeps a folder
  bool has_namespaces_ = true;
  std::map<std::uint16_t, Fd> listeners_;
  bool frozen_ = false;
  bool empty_ = false;
  bool counts_oom_ = false;
  std::uint64_t oom_kills_ = 0;
};

}  // namespace berth::keeper::sandbox
