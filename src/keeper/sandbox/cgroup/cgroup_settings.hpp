#pragma once

#include "base/result.hpp"
#include "keeper/sandbox/cgroup/cgroup_layout.hpp"
#include "keeper/sandbox/limits.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Limits as what is written to which file of a new group, in an order that the kernel accepts.
namespace berth::keeper::sandbox {

// A file that a version of control groups does not have is empty.
struct Knob {
  std::string_view file = {};
  std::string value = {};
};

struct Setting {
  std::string limit = {};  // for people: "memory limit of 1048576 bytes"
  Controller controller = Controller::memory;
  Knob unified = {};
  Knob legacy = {};
};

// What must hold of limits on any machine: `validation_failed` where they contradict each other or
// what a kernel could do.
Result<> check(const Limits& limits);

std::vector<Setting> settings_of(const Limits& limits);

// Writes a value and reads it back; empty, or why it is not in force. The kernel rounds bytes down
// to whole pages.
std::string set_and_verify(const std::string& folder, const Knob& knob);

}  // namespace berth::keeper::sandbox
