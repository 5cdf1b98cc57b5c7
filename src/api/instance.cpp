#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/upkeep/node_life.hpp"

#include <algorithm>
#include <array>

namespace berth::api {
namespace {

using NoInput = Input<None, None, None>;

// The location of the server's own files is for instance administrators.
Task<std::vector<Finding>> findings_for(core::Caller who, Task<std::vector<Finding>> examination) {
  constexpr std::array<std::string_view, 5> of_the_server{"configuration", "keeper", "home",
                                                          "master key", "database"};
  BERTH_CO_TRY(std::vector<Finding> found, co_await std::move(examination));
  if (who.is_instance_admin()) co_return found;
  std::erase_if(found, [&](const Finding& one) {
    return std::ranges::find(of_the_server, one.check) != of_the_server.end();
  });
  co_return found;
}

Function<NoInput, std::vector<Finding>> findings_of(
    std::function<Task<std::vector<Finding>>()> examine) {
  return [examine = std::move(examine)](core::Call call, const NoInput& /*in*/) {
    return findings_for(std::move(call.who), examine());
  };
}

Function<NoInput, std::vector<core::Wall>> walls_of(
    std::function<Task<std::vector<core::Wall>>()> walls) {
  return [walls = std::move(walls)](const core::Call& /*call*/, const NoInput& /*in*/) {
    return walls();
  };
}

Task<std::vector<engine::NodeView>> list_nodes(engine::NodeLife& node, core::Call /*call*/,
                                               None /*options*/) {
  co_return co_await node.all();
}

}  // namespace

std::vector<Entry> instance_operations(engine::Settings& settings, engine::Secrets& secrets,
                                       engine::NodeLife& node, Examination examination) {
  using core::Permission;
  using engine::Secrets;
  using engine::Settings;
  return {
      Operation{.name = "instance.settings",
                .needs = Permission::instance_admin,
                .says = "Read the settings of the instance",
                .call = use(settings, &Settings::get)},
      Operation{.name = "instance.update_settings",
                .needs = Permission::instance_admin,
                .says = "Change the settings of the instance",
                .call = use(settings, &Settings::update)},
      Operation{.name = "instance.rekey",
                .needs = Permission::instance_admin,
                .says = "Seal every secret with a new master key",
                .call = use(secrets, &Secrets::rekey)},
      Operation{.name = "instance.findings",
                .needs = Permission::company_operate,
                .says = "Say what the machine of the server offers and what is wrong with it, as "
                        "'berth doctor' does",
                .call = findings_of(std::move(examination.findings))},
      Operation{.name = "instance.walls",
                .needs = Permission::instance_admin,
                .says = "List what keeps attackers out on this server, and whether it does: each "
                        "wall stands, is weak or is open, with the reason and a remedy",
                .call = walls_of(std::move(examination.walls))},
      Operation{.name = "instance.nodes",
                .needs = Permission::instance_admin,
                .says = "List the servers that share the database: name, address, start and last "
                        "heartbeat",
                .call = use(node, list_nodes)},
  };
}

}  // namespace berth::api
