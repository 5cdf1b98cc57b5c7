#pragma once

#include "keeper/protocol/fields.hpp"

#include <cstdint>
#include <tuple>

namespace berth::keeper::sandbox {

// What one sandbox's processes may use together. 0 means no limit, except for swap.
struct Limits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t swap_bytes = 0;  // besides memory, if that is limited; 0: no swap
  std::uint32_t pids = 0;        // processes and threads
  std::uint32_t cpu_millis = 0;  // 1000 is one full CPU
  std::uint32_t cpu_weight = 0;  // 1 to 10000, relative to others; the default is 100

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
