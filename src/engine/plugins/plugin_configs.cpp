#include "engine/plugins/plugin_configs.hpp"

#include "core/config/linux_config.hpp"
#include "core/config/provider_config.hpp"
#include "engine/leases/reuse.hpp"

namespace berth::engine {
namespace {

std::unexpected<Error> nobody_has(const std::string& provider) {
  return fail(
      Errc::provider_unavailable,
      "Sandbox provider \"" + provider + "\" is not installed or its plugin worker is not running.",
      "install its plugin, or choose a provider from the capabilities of the company");
}

// A provider that keeps a sandbox that it cannot resume would leave one behind with each run.
Error no_reuse(const std::string& provider) {
  Error error{Errc::unprocessable,
              "Sandbox provider \"" + provider +
                  "\" does not declare reusable leases, or its worker lacks resume, release or "
                  "destroy, so its sandboxes serve one run each.",
              "set reuseLease to false"};
  error.issues.push_back({"/config/reuseLease", "is not supported by this provider"});
  return error;
}

Result<> accept(const places::remote::ConfigVerdict& verdict, const std::string& who) {
  if (verdict.ok) return {};
  Error error{Errc::unprocessable,
              verdict.errors.empty() ? who + " rejected its config." : verdict.errors.front(),
              "mend the config as its provider says"};
  for (const std::string& one : verdict.errors) error.issues.push_back({"/config", one});
  error.facts["errors"] = verdict.errors;
  error.facts["warnings"] = verdict.warnings;
  return std::unexpected(std::move(error));
}

}  // namespace

bool PluginConfigs::concerns(core::DriverKind driver, const bj::object& config) {
  if (driver == core::DriverKind::plugin) return true;
  if (driver != core::DriverKind::sandbox) return false;
  const std::string provider = core::provider_of(config);
  return provider != "fake" && provider != core::linux_provider;
}

Task<core::ConfigForStore> PluginConfigs::prepare(core::DriverKind driver,
                                                  bj::object config) const {
  // The common fields: errors there do not depend on the provider.
  BERTH_CO_TRY(core::ConfigForStore normal, core::normalize_for_store(driver, config));
  if (driver == core::DriverKind::plugin) co_return co_await prepare_driver(normal.config);
  co_return co_await prepare_sandbox(normal.config);
}

Task<core::ConfigForStore> PluginConfigs::prepare_sandbox(bj::object config) const {
  const std::string provider = core::provider_of(config);
  if (place_ == nullptr) co_return nobody_has(provider);
  BERTH_CO_TRY(const plugins::DriverPlace found, place_->host.find_provider(provider));
  BERTH_CO_DO(co_await place_->host.ready(found.plugin_id));
  BERTH_CO_TRY(const core::ConfigSchema schema,
               core::ConfigSchema::read(found.driver->config_schema, "/configSchema"));
  BERTH_CO_TRY(bj::object applied, core::apply_schema(schema, std::move(config), "/config"));
  if (asks_for_reuse(applied) && !place_->sandboxes.may_reuse(applied)) {
    co_return std::unexpected(no_reuse(provider));
  }
  BERTH_CO_TRY(const places::remote::ConfigVerdict verdict,
               co_await place_->sandboxes.validate(applied));
  BERTH_CO_DO(accept(verdict, "Sandbox provider \"" + provider + "\""));
  bj::object stored = verdict.normalized.value_or(applied);
  stored["provider"] = provider;
  // The provider's normalized config must not change the fields that Berth owns.
  for (const std::string_view ours :
       {"reuseLease", "timeoutMs", "streamRunLogs", "archiveOnRelease"}) {
    if (applied.contains(ours)) stored[ours] = applied.at(ours);
  }
  co_return core::take_secrets(schema, std::move(stored), {});
}

Task<core::ConfigForStore> PluginConfigs::prepare_driver(bj::object config) const {
  BERTH_CO_TRY(core::PluginConfig parsed, core::parse_plugin_config(config));
  const Result<plugins::DriverPlace> known =
      place_ != nullptr ? place_->host.find_driver(parsed.plugin_key, parsed.driver_key)
                        : fail(Errc::plugin_not_found, "this server has no place for plugins");
  // The caller asked for an environment, so the error is not "plugin not found".
  if (!known) {
    co_return fail(Errc::provider_unavailable,
                   "Plugin \"" + parsed.plugin_key + "\" with environment driver \"" +
                       parsed.driver_key + "\" is not installed: " + known.error().message,
                   "install the plugin first");
  }
  const plugins::DriverPlace& found = *known;
  BERTH_CO_DO(co_await place_->host.ready(found.plugin_id));
  BERTH_CO_TRY(const core::ConfigSchema schema,
               core::ConfigSchema::read(found.driver->config_schema, "/configSchema"));
  BERTH_CO_TRY(bj::object applied,
               core::apply_schema(schema, std::move(parsed.driver_config), "/config/driverConfig"));
  config["driverConfig"] = std::move(applied);
  BERTH_CO_TRY(places::remote::ConfigVerdict verdict, co_await place_->drivers.validate(config));
  BERTH_CO_DO(accept(verdict, "Plugin environment driver \"" + parsed.plugin_key + ":" +
                                  parsed.driver_key + "\""));
  if (verdict.normalized) config["driverConfig"] = *std::move(verdict.normalized);
  co_return core::take_secrets(schema, std::move(config), core::ConfigPath{{"driverConfig"}});
}

}  // namespace berth::engine
