#include "places/absent.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"

namespace berth::places {
namespace {

std::unexpected<Error> no_plugin(const PlaceRef& lease) {
  const Result<core::PluginConfig> config = core::parse_plugin_config(lease.config);
  if (!config) return std::unexpected(config.error());
  return fail(Errc::provider_unavailable,
              "Plugin \"" + config->plugin_key + "\" with environment driver \"" +
                  config->driver_key + "\" is not installed or its worker is not running.",
              "install the plugin " + config->plugin_key + ", or choose another environment");
}

std::unexpected<Error> no_provider(const PlaceRef& lease) {
  const std::string recorded = text_in(lease.metadata, "provider").value_or("");
  const std::string key = recorded.empty() ? core::provider_of(lease.config) : recorded;
  return fail(Errc::provider_unavailable,
              "Sandbox provider \"" + key + "\" is not registered as a built-in provider.",
              "install the plugin that has this provider, or choose another one");
}

std::unexpected<Error> nobody_for(core::DriverKind driver, const PlaceRef& lease) {
  return driver == core::DriverKind::sandbox ? no_provider(lease) : no_plugin(lease);
}

}  // namespace

Task<ProbeReport> Absent::probe(const AcquireRequest& request) {
  const Error why = nobody_for(driver_, request.lease).error();
  ProbeStep step{.name = "plugin",
                 .message = why.message,
                 .code = std::string{name_of(why.code)},
                 .remedy = why.remedy};
  ProbeReport report{.driver = driver_};
  if (driver_ == core::DriverKind::sandbox) {
    const std::string key = core::provider_of(request.lease.config);
    step.name = "provider";
    step.message =
        "Sandbox provider \"" + key + "\" is not installed or its plugin worker is not running.";
    report.details = bj::object{{"provider", key}};
  }
  report.summary = step.message;
  report.steps.push_back(std::move(step));
  co_return report;
}

Task<> Absent::check_config(const bj::object& /*config*/) {
  co_return Result<>{};
}

Task<Acquired> Absent::acquire(const AcquireRequest& request) {
  co_return nobody_for(driver_, request.lease);
}

Task<> Absent::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  co_return nobody_for(driver_, lease);
}

Task<> Absent::destroy(const PlaceRef& lease) {
  co_return nobody_for(driver_, lease);
}

Task<std::vector<PlaceKey>> Absent::held() {
  co_return std::vector<PlaceKey>{};
}

Task<> Absent::close() {
  co_return Result<>{};
}

}  // namespace berth::places
