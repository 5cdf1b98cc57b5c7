// What is done with a sandbox as a whole goes to the provider of the lease.
#include "core/environment_config.hpp"
#include "drivers/sandbox.hpp"

namespace berth::drivers {
namespace {

providers::SandboxName name_in(const LeaseFacts& lease) {
  return {.key = lease.sandbox_id, .provider_lease_id = lease.provider_lease_id};
}

}  // namespace

Task<execution::CapturedTemplate> Sandbox::capture_template(
    const LeaseFacts& lease, const execution::CaptureTemplate& request) {
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->capture_template(std::move(config), name_in(lease), request);
}

Task<bool> Sandbox::delete_template(const bj::object& config,
                                    const execution::DeleteTemplate& request) {
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->delete_template(config, request);
}

Task<execution::Changes> Sandbox::changes(const LeaseFacts& lease) {
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->changes(std::move(config), name_in(lease));
}

Task<> Sandbox::freeze(const LeaseFacts& lease) {
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->freeze(std::move(config), name_in(lease));
}

Task<> Sandbox::thaw(const LeaseFacts& lease) {
  bj::object config = config_of(lease);
  BERTH_CO_TRY(auto* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->thaw(std::move(config), name_in(lease));
}

}  // namespace berth::drivers
