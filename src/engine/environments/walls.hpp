#pragma once

#include "core/rows/wall.hpp"
#include "engine/services.hpp"

#include <vector>

namespace berth::engine {

struct PluginPlace;

// The walls that only the running server knows: what operators and administrators have opened by
// hand, and the plugin boxes. The machine's own walls are in cli/doctor/walls.hpp.
class Walls {
 public:
  // Without a plugin place there are no boxes to report.
  Walls(Services& services, const PluginPlace* plugins) : services_(services), plugins_(plugins) {}

  Task<std::vector<core::Wall>> list();

 private:
  Services& services_;
  const PluginPlace* plugins_;
};

}  // namespace berth::engine
