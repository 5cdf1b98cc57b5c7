#pragma once

#include "core/config/environment_config.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/plugins/plugins.hpp"

namespace berth::engine {

// The config rules of environments whose provider or driver comes from a plugin: its schema first,
// then the word of its worker.
class PluginConfigs {
 public:
  // Without a place there are no plugins, and every such config is refused.
  explicit PluginConfigs(PluginPlace* place) : place_(place) {}

  // A provider that is part of this program, and every other driver, has rules in core.
  static bool concerns(core::DriverKind driver, const bj::object& config);

  // The config in its stored shape, with what must become secrets apart. provider_unavailable
  // when nobody has it, plugin_not_ready, `unprocessable` with a pointer to each
  // wrong field.
  Task<core::ConfigForStore> prepare(core::DriverKind driver, bj::object config) const;

 private:
  Task<core::ConfigForStore> prepare_sandbox(bj::object config) const;
  Task<core::ConfigForStore> prepare_driver(bj::object config) const;

  PluginPlace* place_;
};

}  // namespace berth::engine
