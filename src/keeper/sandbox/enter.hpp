#pragma once

#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>

namespace berth::keeper::sandbox {

// Everything that enter() needs besides the plan. The keeper prepares it before it forks.
struct Setup {
  const Cgroup& cgroup;
  Cgroup::Born born = Cgroup::Born::outside;
  Network network = Network::own;
  int network_namespace = -1;  // to be entered; -1: the child was started in its own
  std::uint32_t first_id = 0;  // of the sandbox's range; 0: only the maker's id
  // Entered when all else is done. -1: the child was started in it or, with a range, this machine
  // does not allow one.
  int user_namespace = -1;
  uid_t maker = 0;  // if the child was started in the user namespace
  gid_t maker_group = 0;
  int control = -1;  // to the keeper, which sends the plan

  bool has_range() const { return first_id != 0; }
  bool has_user_namespace() const { return user_namespace >= 0 || !has_range(); }
};

// The descriptors that are open after enter() has succeeded.
inline constexpr int control_descriptor = 3;
inline constexpr int root_descriptor = 4;
inline constexpr int upper_descriptor = 5;
inline constexpr int tray_descriptor = 6;        // what holds writes to the root, if it is kept
inline constexpr int preference_descriptor = 7;  // oom_score_adj of pid 1

// Confines the calling process to what the plan grants. It must be the first of its namespaces,
// have one thread, and have read no untrusted byte. Steps that need no plan are done first; then it
// waits for the plan. This cannot be undone, so after a failure the process must exit.
SetupReport enter(const Setup& setup);

}  // namespace berth::keeper::sandbox
