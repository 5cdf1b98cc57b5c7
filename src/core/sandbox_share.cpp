#include "core/sandbox_share.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"

namespace berth::core {
namespace {

struct Dimension {
  std::int64_t SandboxShare::* amount;
  std::string_view unit;
};
constexpr Dimension dimensions[] = {
    {&SandboxShare::memory_mb, "MB of memory"},
    {&SandboxShare::disk_mb, "MB of disk"},
    {&SandboxShare::pids, "processes"},
    {&SandboxShare::sandboxes, "sandboxes"},
};

}  // namespace

SandboxShare& SandboxShare::operator+=(const SandboxShare& more) {
  for (const Dimension& each : dimensions) this->*each.amount += more.*each.amount;
  return *this;
}

SandboxShare& SandboxShare::operator-=(const SandboxShare& less) {
  for (const Dimension& each : dimensions) this->*each.amount -= less.*each.amount;
  return *this;
}

SandboxShare operator*(SandboxShare share, std::int64_t times) {
  for (const Dimension& each : dimensions) share.*each.amount *= times;
  return share;
}

SandboxShare share_of(const bj::object& config) {
  if (provider_of(config) != linux_provider) return {};
  const auto wanted = read_loosely<LinuxConfig>(config);
  return {.memory_mb = wanted.memory_mb.value_or(usual_memory_mb),
          .disk_mb = wanted.disk_mb.value_or(usual_disk_mb),
          .pids = wanted.pids.value_or(usual_pids),
          .sandboxes = 1};
}

std::optional<std::string> why_no_room(const SandboxShare& in_use, const SandboxShare& more,
                                       const SandboxShare& limit) {
  for (const Dimension& each : dimensions) {
    const std::int64_t most = limit.*each.amount;
    const std::int64_t asked = more.*each.amount;
    if (most == 0 || asked == 0 || in_use.*each.amount + asked <= most) continue;
    return std::to_string(in_use.*each.amount) + " of " + std::to_string(most) + " " +
           std::string{each.unit} + " are taken, and it asks for " + std::to_string(asked);
  }
  return std::nullopt;
}

}  // namespace berth::core
