#pragma once

#include "base/owned.hpp"

#include <cstdint>
#include <initializer_list>

namespace berth::keeper::sandbox {

struct MountOption {
  const char* name;
  const char* value;
};

// A filesystem of its own that is mounted nowhere yet, but can be filled by its descriptor. Without
// it errno says why.
Fd new_mount(const char* type, std::initializer_list<MountOption> options,
             std::uint64_t attributes);

}  // namespace berth::keeper::sandbox
