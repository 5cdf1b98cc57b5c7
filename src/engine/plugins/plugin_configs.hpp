#pragma once

#include "core/config/environment_config.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/plugins/plugins.hpp"

namespace berth::engine {

// Config validation for environments whose provider or driver comes from a plugin: first its
// schema, then its worker.
class PluginConfigs {
 public:
  // Without a place there are no plugins, and every such config is rejected.
  explicit PluginConfigs(PluginPlace* place) : place_(place) {}

  // Whether plugin rules apply. Built-in providers and all other drivers have their rules in core.
  static bool concerns(core::DriverKind driver, const bj::object& config);

  // The config in stored form, with values that must become secrets listed separately.
  // provider_unavailable if no plugin has it, plugin_not_ready, or `unprocessable` with a pointer
  // to each invalid field.
  Task<core::ConfigForStore> prepare(core::DriverKind driver, bj::object config) const;

 private:
  Task<core::ConfigForStore> prepare_sandbox(bj::object config) const;
  Task<core::ConfigForStore> prepare_driver(bj::object config) const;

  PluginPlace* place_;
};

}  // namespace berth::engine
