#pragma once

#include "base/owned.hpp"
#include "keeper/sandbox/plan.hpp"

#include <span>
#include <vector>

// The plan of a sandbox on its way to the process that becomes its pid 1, and waits for it in its
// new namespaces. Both sides are the keeper's own program.
namespace berth::keeper::sandbox {

struct Orders {
  Plan plan = {};
  std::vector<Fd> bind_maps = {};  // user namespaces, of the first binds of the plan
  Fd tray = {};                    // of the sandbox before this one, with what was kept of it
};

// What travels beside a plan. -1: there is no tray.
struct Enclosed {
  std::span<const int> bind_maps = {};
  int tray = -1;
};

// 0 or errno.
int send_orders(int control, const Plan& plan, Enclosed enclosed);
// Waits for them. ECANCELED when the keeper is gone.
int receive_orders(int control, Orders& orders);

}  // namespace berth::keeper::sandbox
