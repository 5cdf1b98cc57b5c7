#include "engine/walls.hpp"

#include "core/linux_config.hpp"
#include "store/environments.hpp"

#include <algorithm>
#include <array>

namespace berth::engine {
namespace {

using core::Attacker;
using core::Wall;
using core::WallState;

constexpr std::int64_t environments_max = 10'000;
constexpr std::size_t names_max = 5;

struct LinuxEnvironment {
  std::string name;
  core::LinuxConfig config;
};

Result<std::vector<LinuxEnvironment>> linux_environments(store::Session& session) {
  BERTH_TRY(const auto rows,
            store::environments_of_provider(session, core::linux_provider, environments_max));
  std::vector<LinuxEnvironment> out;
  for (const auto& row : rows) {
    auto config = core::parse_linux_config(row.value.config);
    if (config) out.push_back({row.value.name, *std::move(config)});
  }
  return out;
}

// "Build, Deploy and 3 more"
std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), names_max); ++i) {
    out += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > names_max) out += " and " + std::to_string(names.size() - names_max) + " more";
  return out;
}

template <class Test>
Result<std::vector<std::string>> names_where(store::Session& session, Test is_so) {
  BERTH_TRY(const std::vector<LinuxEnvironment> all, linux_environments(session));
  std::vector<std::string> names;
  for (const LinuxEnvironment& one : all) {
    if (is_so(one.config)) names.push_back(one.name);
  }
  return names;
}

Result<Wall> sandbox_network(store::Session& session) {
  Wall wall{.key = "sandbox_network", .title = "Sandbox network", .against = Attacker::agent};
  BERTH_TRY(const auto names, names_where(session, [](const core::LinuxConfig& config) {
              return config.network == core::LinuxNetwork::host;
            }));
  if (names.empty()) {
    return stands(
        std::move(wall),
        "Every sandbox has a network of its own, and leaves it through the egress proxy.");
  }
  return falls(
      std::move(wall), WallState::open,
      "Sandboxes of these environments use the network of this machine: " + listed(names) + ".",
      "remove network: host from them, and name what they may reach in egress.allow");
}

Result<Wall> sandbox_allowances(store::Session& session) {
  Wall wall{.key = "sandbox_allowances", .title = "Sandbox weakenings", .against = Attacker::agent};
  BERTH_TRY(const auto names, names_where(session, [](const core::LinuxConfig& config) {
              const bool allows = config.allow && !config.allow->empty();
              return allows || config.min_isolation == core::Isolation::minimal;
            }));
  if (names.empty()) {
    return stands(std::move(wall), "No environment accepts a sandbox that is weaker than usual.");
  }
  return falls(std::move(wall), WallState::weak,
               "These environments allow weaker sandboxes: " + listed(names) + ".",
               "remove allow and minIsolation: minimal from their configs");
}

// One line per wall.
constexpr std::array<Result<Wall> (*)(store::Session&), 2> walls{sandbox_network,
                                                                 sandbox_allowances};

}  // namespace

Task<std::vector<Wall>> Walls::list() {
  co_return co_await means_.store.read([](store::Session& s) -> Result<std::vector<Wall>> {
    std::vector<Wall> out;
    for (const auto look : walls) {
      BERTH_TRY(Wall wall, look(s));
      out.push_back(std::move(wall));
    }
    return out;
  });
}

}  // namespace berth::engine
