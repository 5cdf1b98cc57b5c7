#pragma once

#include "core/wall.hpp"
#include "engine/means.hpp"

#include <vector>

namespace berth::engine {

// The walls that only the database knows of: what operators and administrators have opened by hand.
// The machine's own walls are in cli/doctor/walls.hpp.
class Walls {
 public:
  explicit Walls(Means& means) : means_(means) {}

  Task<std::vector<core::Wall>> list();

 private:
  Means& means_;
};

}  // namespace berth::engine
