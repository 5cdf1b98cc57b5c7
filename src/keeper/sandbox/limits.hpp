#pragma once

#include "keeper/protocol/fields.hpp"

#include <cstdint>
#include <tuple>

namespace berth::keeper::sandbox {

// What the processes of one sandbox may use together. 0 is no limit, except for swap.
struct Limits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t swap_bytes = 0;  // beside the memory, when that is limited; 0 is no swap at all
  std::uint32_t pids = 0;        // processes and threads
  std::uint32_t cpu_millis = 0;  // 1000 is one processor's whole time
  std::uint32_t cpu_weight = 0;  // 1 to 10000, against others; 100 is usual

  bool is_any() const {
    return memory_bytes != 0 || pids != 0 || cpu_millis != 0 || cpu_weight != 0;
  }
  friend bool operator==(const Limits&, const Limits&) = default;
  static constexpr auto fields() {
    return std::tuple{field("memory_bytes", &Limits::memory_bytes),
                      field("swap_bytes", &Limits::swap_bytes), field("pids", &Limits::pids),
                      field("cpu_millis", &Limits::cpu_millis),
                      field("cpu_weight", &Limits::cpu_weight)};
  }
};

}  // namespace berth::keeper::sandbox
