#pragma once

#include "keeper/sandbox/cgroup/cgroup.hpp"
#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

#include <sys/types.h>

#include <cstdint>

namespace berth::keeper::sandbox {

// Everything that enter() needs besides the plan, made by the keeper before it forks.
struct Setup {
  const Cgroup& cgroup;
  Cgroup::Born born = Cgroup::Born::outside;
  Network network = Network::own;
  int network_namespace = -1;  // an own one to be entered; -1: the child was born in it
  std::uint32_t first_id = 0;  // of the range that is the sandbox's; 0: it has the maker's id only
  // To be entered when all else is done. -1: the child was born in it, or, with a range, there is
  // none on this machine.
  int user_namespace = -1;
  uid_t maker = 0;  // where the child was born in it
  gid_t maker_group = 0;
  int control = -1;  // to the keeper; the plan comes from there

  bool has_range() const { return first_id != 0; }
  bool has_user_namespace() const { return user_namespace >= 0 || !has_range(); }
};

// The descriptors that are left when enter() has returned well.
inline constexpr int control_descriptor = 3;
inline constexpr int root_descriptor = 4;
inline constexpr int upper_descriptor = 5;
inline constexpr int tray_descriptor = 6;        // what the root is written to, where it is kept
inline constexpr int preference_descriptor = 7;  // of the kernel, for whom memory is taken from

// Turns the calling process, the first of its namespaces, with one thread and with no untrusted
// byte read, into one that has only what the plan grants. What needs no plan is done first; then it
// is waited for. It cannot be undone, so after a failure the process has to end.
SetupReport enter(const Setup& setup);

}  // namespace berth::keeper::sandbox
