// A plugin as the API shows it to one caller.
#include "engine/plugin_egress.hpp"
#include "engine/plugins.hpp"

namespace berth::engine {

// What the row says may be what a worker said, in whatever words.
std::optional<std::string> Plugins::shown_error(const core::Caller& who,
                                                const core::Plugin& plugin) {
  if (who.is_instance_admin() || !plugin.last_error) return plugin.last_error;
  if (plugin.status == core::PluginState::disabled) {
    return "The plugin is disabled; ask an instance administrator why.";
  }
  return "The plugin does not run; an instance administrator can read why in its log.";
}

PluginView Plugins::view(const core::Caller& who, const core::Plugin& plugin) const {
  const auto status = place_ != nullptr ? place_->host.status(plugin.id) : std::nullopt;
  std::optional<PluginIsolation> box;
  if (status && status->state == plugins::WorkerState::running) box = isolation_of(*status);
  return {.id = plugin.id,
          .plugin_key = plugin.plugin_key,
          .package_name = plugin.package_name,
          .source = plugin.source,
          .version = plugin.package_version,
          .api_version = plugin.api_version,
          .categories = plugin.categories,
          .manifest_json = plugin.manifest,
          .status = plugin.status,
          .install_order = plugin.install_order,
          .package_path = plugin.package_path,
          .last_error = shown_error(who, plugin),
          .pending_upgrade = plugin.pending_upgrade,
          .supports_config_test = status && status->methods.contains("validateConfig"),
          .isolation = box ? std::optional{box->level} : std::nullopt,
          .box = std::move(box),
          .egress = plugin.egress,
          .installed_at = plugin.installed_at,
          .updated_at = plugin.updated_at};
}

}  // namespace berth::engine
