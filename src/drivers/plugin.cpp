#include "drivers/plugin.hpp"

#include "core/environment_config.hpp"

namespace berth::drivers {
namespace {

std::unexpected<Error> unavailable(const LeaseFacts& lease) {
  const Result<core::PluginConfig> config = core::parse_plugin_config(lease.config);
  if (!config) return std::unexpected(config.error());
  return fail(Errc::provider_unavailable,
              "Plugin \"" + config->plugin_key + "\" with environment driver \"" +
                  config->driver_key + "\" is not installed or its worker is not running.",
              "install the plugin " + config->plugin_key + ", or choose another environment");
}

}  // namespace

Task<ProbeReport> Plugin::probe(const AcquireRequest& request) {
  const Error why = unavailable(request.lease).error();
  const ProbeStep step{.name = "plugin",
                       .message = why.message,
                       .code = std::string{name_of(why.code)},
                       .remedy = why.remedy};
  co_return ProbeReport{
      .driver = core::DriverKind::plugin, .summary = why.message, .steps = {step}};
}

Task<Acquired> Plugin::acquire(const AcquireRequest& request) {
  co_return unavailable(request.lease);
}

Task<Workspace> Plugin::realize(const LeaseFacts& lease,
                                const std::optional<std::string>& /*wanted*/) {
  co_return unavailable(lease);
}

Task<Started> Plugin::start(const LeaseFacts& lease, const Command& /*command*/) {
  co_return unavailable(lease);
}

Task<Ended> Plugin::follow(const LeaseFacts& lease, const std::string& /*exec_id*/,
                           std::uint64_t /*offset*/, OutputTaker& /*taker*/) {
  co_return unavailable(lease);
}

Task<> Plugin::send(const LeaseFacts& lease, const std::string& /*exec_id*/, Input /*input*/) {
  co_return unavailable(lease);
}

Task<> Plugin::cancel(const LeaseFacts& lease, const std::string& /*exec_id*/,
                      std::int64_t /*grace_ms*/) {
  co_return unavailable(lease);
}

Task<> Plugin::renew(const LeaseFacts& lease, std::int64_t /*deadline_ms*/) {
  co_return unavailable(lease);
}

Task<> Plugin::release(const LeaseFacts& lease, core::LeaseEvent /*how*/) {
  co_return unavailable(lease);
}

Task<> Plugin::destroy(const LeaseFacts& lease) {
  co_return unavailable(lease);
}

}  // namespace berth::drivers
