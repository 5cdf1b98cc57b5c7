#pragma once

#include "base/result.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"
#include "keeper/sandbox/limits.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Translates limits into writes to the files of a new group, in an order that the kernel accepts.
namespace berth::keeper::sandbox {

// The file name is empty if this cgroup version does not have it.
struct Knob {
  std::string_view file = {};
  std::string value = {};
};

struct Setting {
  std::string limit = {};  // for messages: "memory limit of 1048576 bytes"
  Controller controller = Controller::memory;
  Knob unified = {};
  Knob legacy = {};
};

// Validates limits for any machine: `validation_failed` if they contradict each other or exceed
// what a kernel supports.
Result<> check(const Limits& limits);

std::vector<Setting> settings_of(const Limits& limits);

// Writes a value and reads it back. Returns why it is not in force, or an empty string. The kernel
// rounds bytes down to whole pages.
std::string set_and_verify(const std::string& folder, const Knob& knob);

}  // namespace berth::keeper::sandbox
