#pragma once

#include "keeper/sandbox/cgroup.hpp"
#include "keeper/sandbox/mounts.hpp"
#include "keeper/sandbox/namespaces.hpp"
#include "keeper/sandbox/plan.hpp"
#include "keeper/sandbox/setup.hpp"

namespace berth::keeper::sandbox {

// Everything that enter() needs besides the plan, made by the keeper before it forks.
struct Setup {
  const Plan& plan;
  const Cgroup& cgroup;
  Cgroup::Born born = Cgroup::Born::outside;
  Owners owners = {};
  int user_namespace = -1;  // to be entered when all else is done; -1: the child was born in it
  IdMap own_user = {};      // where the child was born in it
  IdMap own_group = {};
  MountMaps maps = {};
  int control = -1;  // to the keeper
};

// The descriptors that are left when enter() has returned well.
inline constexpr int control_descriptor = 3;
inline constexpr int root_descriptor = 4;
inline constexpr int upper_descriptor = 5;

// Turns the calling process, the first of its namespaces, with one thread and with no untrusted
// byte read, into one that has only what the plan grants. It cannot be undone, so after a failure
// the process has to end.
SetupReport enter(const Setup& setup);

}  // namespace berth::keeper::sandbox
