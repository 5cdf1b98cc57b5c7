#pragma once

#include "base/json/json.hpp"

#include <optional>
#include <string>

namespace berth::core {

// What a sandbox on this machine may use if its config has no limit: typical for a coding agent.
inline constexpr std::int64_t usual_memory_mb = 4096;
inline constexpr std::int64_t usual_disk_mb = 3072;
inline constexpr std::int64_t usual_pids = 2048;

// What sandboxes together may use of the machine. As a limit, 0 means none.
struct SandboxShare {
  std::int64_t memory_mb = 0;
  std::int64_t disk_mb = 0;  // also held in memory
  std::int64_t pids = 0;
  std::int64_t sandboxes = 0;

  SandboxShare& operator+=(const SandboxShare& more);
  SandboxShare& operator-=(const SandboxShare& less);
  friend SandboxShare operator*(SandboxShare share, std::int64_t times);
  friend bool operator==(const SandboxShare&, const SandboxShare&) = default;
};

// What one sandbox with this config may use. Zero for a provider whose sandboxes are elsewhere.
SandboxShare share_of(const bj::object& config);

// Why `more` does not fit beside what is in use; empty if it fits. "12288 of 16384 MB of memory are
// taken, and it asks for 8192".
std::optional<std::string> why_no_room(const SandboxShare& in_use, const SandboxShare& more,
                                       const SandboxShare& limit);

}  // namespace berth::core
