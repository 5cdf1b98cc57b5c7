// A plugin as the API shows it to one caller.
#include "engine/plugins/plugin_egress.hpp"
#include "engine/plugins/plugins.hpp"

namespace berth::engine {

// The row's error may contain arbitrary text from a worker.
std::optional<std::string> Plugins::shown_error(const core::Caller& who,
                                                const core::Plugin& plugin) {
  if (who.is_instance_admin() || !plugin.last_error) return plugin.last_error;
  if (plugin.status == core::PluginState::disabled) {
    return "The plugin is disabled; ask an instance administrator why.";
  }
  return "The plugin does not run; an instance administrator can read why in its log.";
}

namespace {

// A folder or file is shown by its last component only.
std::string shown_name(const core::Caller& who, const core::Plugin& plugin) {
  if (who.is_instance_admin() || plugin.source == core::PluginSource::npm) {
    return plugin.package_name;
  }
  return plugin.package_name.substr(plugin.package_name.rfind('/') + 1);
}

// Package locations are useful to the machine's administrators, and to attackers.
std::optional<core::PendingUpgrade> shown_upgrade(const core::Caller& who,
                                                  const core::Plugin& plugin) {
  std::optional<core::PendingUpgrade> shown = plugin.pending_upgrade;
  if (shown && !who.is_instance_admin()) {
    shown->package_path.clear();
    shown->folder_id.reset();
  }
  return shown;
}

}  // namespace

PluginView Plugins::view(const core::Caller& who, const core::Plugin& plugin) const {
  const auto status = place_ != nullptr ? place_->host.status(plugin.id) : std::nullopt;
  std::optional<PluginIsolation> box;
  if (status && status->state == plugins::WorkerState::running) box = isolation_of(*status);
  return {.id = plugin.id,
          .plugin_key = plugin.plugin_key,
          .package_name = shown_name(who, plugin),
          .source = plugin.source,
          .version = plugin.package_version,
          .api_version = plugin.api_version,
          .categories = plugin.categories,
          .manifest_json = plugin.manifest,
          .status = plugin.status,
          .install_order = plugin.install_order,
          .package_path = who.is_instance_admin() ? plugin.package_path : std::nullopt,
          .last_error = shown_error(who, plugin),
          .pending_upgrade = shown_upgrade(who, plugin),
          .supports_config_test = status && status->methods.contains("validateConfig"),
          .isolation = box ? std::optional{box->level} : std::nullopt,
          .box = std::move(box),
          .egress = plugin.egress,
          .installed_at = plugin.installed_at,
          .updated_at = plugin.updated_at};
}

}  // namespace berth::engine
