#pragma once

#include "base/owned.hpp"
#include "keeper/sandbox/plan.hpp"

#include <span>
#include <vector>

// Sends a sandbox's plan to the process that becomes its pid 1 and waits for it in its new
// namespaces. Both sides are the keeper's own program.
namespace berth::keeper::sandbox {

struct Orders {
  Plan plan = {};
  std::vector<Fd> bind_maps = {};  // user namespaces for the plan's first binds
  Fd tray = {};                    // the old sandbox's, with what was kept
};

// What is sent with a plan. -1: no tray.
struct Enclosed {
  std::span<const int> bind_maps = {};
  int tray = -1;
};

// Returns 0 or errno.
int send_orders(int control, const Plan& plan, Enclosed enclosed);
// Waits for them. ECANCELED if the keeper has ended.
int receive_orders(int control, Orders& orders);

}  // namespace berth::keeper::sandbox
