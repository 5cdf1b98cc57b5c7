#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {

std::vector<Route> instance_routes(engine::Engine& work) {
  using core::Permission;
  using engine::InstanceSettings;
  return {
      Endpoint<None, None, None, core::Stored<InstanceSettings>>{
          .verb = Verb::get,
          .path = "/api/instance/settings",
          .needs = Permission::instance_admin,
          .tag = "instance",
          .says = "Read the settings of the instance",
          .call = [&work](core::Call call, auto /*in*/) { return work.settings.get(call); }},
      Endpoint<None, None, engine::UpdateSettings, core::Stored<InstanceSettings>>{
          .verb = Verb::patch,
          .path = "/api/instance/settings",
          .needs = Permission::instance_admin,
          .tag = "instance",
          .says = "Change the settings of the instance",
          .call = [&work](core::Call call,
                          auto in) { return work.settings.update(call, std::move(in.body)); }},
      Endpoint<None, None, None, engine::Rekeyed>{
          .verb = Verb::post,
          .path = "/api/instance/rekey",
          .needs = Permission::instance_admin,
          .tag = "instance",
          .says = "Seal every secret with a new master key",
          .call = [&work](core::Call call, auto /*in*/) { return work.secrets.rekey(call); }},
  };
}

}  // namespace berth::http
