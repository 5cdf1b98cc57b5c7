// Operations on a sandbox as a whole, which go to the lease's provider.
#include "core/config/environment_config.hpp"
#include "places/sandbox.hpp"

namespace berth::drivers {
namespace {

providers::SandboxName name_in(const PlaceRef& lease) {
  return {.key = lease.sandbox_id, .provider_lease_id = lease.provider_lease_id};
}

}  // namespace

Task<execution::CapturedTemplate> Sandbox::capture_template(
    const PlaceRef& lease, const execution::CaptureTemplate& request) {
  if (Driver* const plugin = plugin_of(lease)) {
    co_return co_await plugin->capture_template(lease, request);
  }
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->capture_template(std::move(config), name_in(lease), request);
}

Task<bool> Sandbox::delete_template(const PlaceRef& place,
                                    const execution::DeleteTemplate& request) {
  if (Driver* const plugin = plugin_of(place)) {
    co_return co_await plugin->delete_template(place, request);
  }
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(place.config)));
  co_return co_await provider->delete_template(place.config, request);
}

Task<std::optional<SetupAccess>> Sandbox::setup_access(const PlaceRef& lease) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->setup_access(lease);
  co_return std::optional<SetupAccess>{};
}

Task<execution::LiveCommandPtr> Sandbox::open_login(const PlaceRef& lease,
                                                    execution::LoginCommand command) {
  Driver* const plugin = plugin_of(lease);
  if (plugin == nullptr) co_return co_await Driver::open_login(lease, command);
  co_return co_await plugin->open_login(lease, command);
}

Task<execution::LiveCommandPtr> Sandbox::open_stream(const PlaceRef& lease, const Command& command,
                                                     execution::DuplexBridge bridge) {
  Driver* const plugin = plugin_of(lease);
  if (plugin == nullptr) co_return nullptr;
  co_return co_await plugin->open_stream(lease, command, bridge);
}

Task<execution::Changes> Sandbox::changes(const PlaceRef& lease) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->changes(lease);
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->changes(std::move(config), name_in(lease));
}

Task<> Sandbox::freeze(const PlaceRef& lease) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->freeze(lease);
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->freeze(std::move(config), name_in(lease));
}

Task<> Sandbox::thaw(const PlaceRef& lease) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->thaw(lease);
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->thaw(std::move(config), name_in(lease));
}

}  // namespace berth::drivers
