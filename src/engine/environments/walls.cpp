#include "engine/environments/walls.hpp"

#include "core/config/linux_config.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/plugins/plugins.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"

#include <algorithm>
#include <array>

namespace berth::engine {
namespace {

using core::Attacker;
using core::Wall;
using core::WallState;

constexpr std::int64_t environments_max = 10'000;
constexpr std::int64_t companies_max = 1'000;
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

Result<Wall> sandbox_network(store::Session& session, const Services& /*services*/) {
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

Result<Wall> sandbox_allowances(store::Session& session, const Services& /*services*/) {
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

// "Acme (local, host_network)"
std::string with_allowances(const core::Company& company,
                            const std::vector<core::Allowance>& allowed) {
  std::string names;
  for (const core::Allowance one : allowed) {
    names += (names.empty() ? "" : ", ") + std::string{name_of(one)};
  }
  return company.name + " (" + names + ")";
}

Result<Wall> company_machine(store::Session& session, const Services& services) {
  Wall wall{.key = "company_machine",
            .title = "This machine without a sandbox",
            .against = Attacker::company};
  BERTH_TRY(const auto page,
            store::list_companies(session, core::Reach::everything(), {.limit = companies_max}));
  std::vector<std::string> names;
  for (const auto& row : page.rows) {
    const std::vector<core::Allowance> allowed = allowed_to(services, row.value).names();
    if (!allowed.empty()) names.push_back(with_allowances(row.value, allowed));
  }
  if (names.empty()) {
    return stands(std::move(wall),
                  "No company may use Local, the network of this machine, private addresses or "
                  "weak sandboxes.");
  }
  return falls(
      std::move(wall), WallState::weak,
      "These companies may use this machine without a sandbox: " + listed(names) + ".",
      "take back what is not needed, for example with 'berth company forbid COMPANY local'");
}

// One line per wall.
constexpr std::array<Result<Wall> (*)(store::Session&, const Services&), 3> walls{
    sandbox_network, sandbox_allowances, company_machine};

Wall plugin_boxes(const PluginPlace& place) {
  Wall wall{.key = "plugin_boxes", .title = "Plugin boxes", .against = Attacker::plugin};
  std::vector<std::string> weak;
  bool is_open = false;
  for (const plugins::PluginStatus& one : place.host.list()) {
    const bool runs = one.state == plugins::WorkerState::running;
    if (!runs || one.box.level == keeper::BoxLevel::strong) continue;
    weak.push_back(one.plugin_key);
    is_open = is_open || one.box.level == keeper::BoxLevel::none;
  }
  if (weak.empty()) {
    return stands(std::move(wall),
                  "Every plugin that runs has a box with its own files, processes and network.");
  }
  return falls(std::move(wall), is_open ? WallState::open : WallState::weak,
               "These plugins run in a box that lacks walls: " + listed(weak) + ".",
               "'berth plugin show PLUGIN' names what is missing and how to get it");
}

}  // namespace

Task<std::vector<Wall>> Walls::list() {
  BERTH_CO_TRY(auto out,
               co_await services_.store.read([&](store::Session& s) -> Result<std::vector<Wall>> {
                 std::vector<Wall> found;
                 for (const auto look : walls) {
                   BERTH_TRY(Wall wall, look(s, services_));
                   found.push_back(std::move(wall));
                 }
                 return found;
               }));
  if (plugins_ != nullptr) out.push_back(plugin_boxes(*plugins_));
  co_return out;
}

}  // namespace berth::engine
