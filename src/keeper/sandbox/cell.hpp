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
  std::string_view id;           // part of the control group names
  rlimit open_files;             // the limit for commands
  std::span<char> command_line;  // the keeper's; pid 1 shows its own name there
  // A network namespace in its original state, to be used instead of a new one; -1: none.
  int network_namespace = -1;
  const CgroupLayout* layout = nullptr;  // if it is known already
};

// What must be known about a sandbox before it can be prepared.
struct Kind {
  Network network = Network::own;
  std::uint32_t first_id = 0;  // of its range; 0: one that no other keeper's sandbox has
  friend bool operator==(const Kind&, const Kind&) = default;
};
Kind kind_of(const Plan& plan);

// A sandbox as its keeper holds it: pid 1, and the handles that the host needs to it. Nothing of it
// is left after its destruction.
class Cell {
 public:
  // Makes the whole sandbox or nothing. `isolation_too_weak` if it would be weaker than the plan
  // requires.
  static Result<std::unique_ptr<Cell>> make(const Plan& plan, const Surroundings& surroundings);
  // The same in two steps. First the slowest part, which needs no plan: control groups, namespaces,
  // and the process that will be pid 1 and waits for the plan.
  static Result<std::unique_ptr<Cell>> conceive(const Kind& kind, const Surroundings& surroundings);
  // Replaces an empty sandbox with a new one of the same plan. Of its files only the plan's kept
  // folder is carried over. The old sandbox has ended even after a failure.
  static Result<std::unique_ptr<Cell>> remake(std::unique_ptr<Cell> former, const Plan& plan,
                                              const Surroundings& surroundings);
  // The weakest sandbox, for machines where an ordinary user has no namespaces: commands run as the
  // keeper's own user and see the host's paths, restricted by Landlock and system-call filters.
  // What they write is in `box_folder` of the current directory. Only for a plan that accepts the
  // level `minimal`.
  static Result<std::unique_ptr<Cell>> make_minimal(const Plan& plan,
                                                    const Surroundings& surroundings);
  // Whether it can become what the plan describes.
  bool suits(const Plan& plan) const;
  // May be called once. After a failure the Cell must be destroyed.
  Result<> become(const Plan& plan, Fd tray = {});
  ~Cell();
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  const Confined& confined() const { return confined_; }
  pid_t init_pid() const { return confined_.init_pid; }
  // If false, the end of pid 1 does not end the other processes.
  bool has_namespaces() const { return has_namespaces_; }
  // Readable when pid 1 has ended.
  int init_handle() const { return init_.get(); }

  // Starts a warden in the sandbox that waits for a command on the other end of this channel.
  Result<> start_warden(int channel) const;
  // The master of a new terminal in the sandbox's own /dev/pts.
  Result<Fd> open_terminal() const;
  // A socket that listens on 127.0.0.1 in the sandbox; the same one for the same port.
  Result<int> listener(std::uint16_t port);
  // A socket that is connecting to a loopback port in the sandbox. `execution_unsupported` if the
  // loopback is the host's own: a sandbox must not give access to the machine's services.
  Result<Fd> dial(std::uint16_t port, LoopbackFamily family) const;
  int root() const { return root_.get(); }
  // -1 if writes do not go to a separate layer.
  int upper() const { return upper_.get(); }
  const Cgroup& cgroup() const { return cgroup_; }
  // Processes killed for lack of memory since the last call, if memory is limited.
  std::uint64_t new_oom_kills();

  // Freezes all processes until thaw(), which does nothing if they are not frozen.
  Result<> freeze();
  Result<> thaw();
  // Kills all processes but pid 1 and waits until they have ended. Descriptors of pid 1 remain
  // open.
  Result<> empty();
  // Kills pid 1, and with it everything inside, and waits for the end.
  void kill();
  // Whether all processes inside are known to have ended.
  bool is_empty() const { return empty_; }

 private:
  Cell(const Kind& kind, Cgroup cgroup) : kind_(kind), cgroup_(std::move(cgroup)) {}
  Result<> start(const Surroundings& surroundings);
  Result<> start_minimal(const Plan& plan, const Surroundings& surroundings);
  // Pid 1's answer and the descriptors that came with it.
  struct Answer {
    InitReply reply = {};
    std::vector<Fd> passed = {};
  };
  Result<Answer> ask(const InitRequest& request, int limit_ms) const;
  Result<Fd> ask_socket(const InitRequest& request) const;

  Kind kind_;
  std::uint32_t first_id_ = 0;  // 0: only the keeper's own id
  Cgroup cgroup_;
  UserNamespace ids_;
  Confined confined_;
  Fd init_;
  Fd control_;
  Fd root_;
  Fd upper_;
  Fd tray_;  // if the plan keeps a folder
  bool has_namespaces_ = true;
  std::map<std::uint16_t, Fd> listeners_;
  bool frozen_ = false;
  bool empty_ = false;
  bool counts_oom_ = false;
  std::uint64_t oom_kills_ = 0;
};

}  // namespace berth::keeper::sandbox
