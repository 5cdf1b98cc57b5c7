#pragma once

#include "base/owned.hpp"

#include <cstdint>
#include <initializer_list>

namespace berth::keeper::sandbox {

struct MountOption {
  const char* name;
  const char* value;
};

// A new filesystem that is not mounted anywhere yet, but can be filled through its descriptor. On
// failure the descriptor is empty and errno is set.
Fd new_mount(const char* type, std::initializer_list<MountOption> options,
             std::uint64_t attributes);

}  // namespace berth::keeper::sandbox
