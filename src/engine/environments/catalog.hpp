#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/placement.hpp"
#include "core/rows/template.hpp"
#include "places/registry.hpp"

#include <map>
#include <mutex>

namespace berth::engine {

BOOST_DEFINE_ENUM_CLASS(Support, supported, unsupported)

// What one sandbox provider can do, as the API shows it.
struct ProviderCapability {
  Support status = Support::unsupported;
  bool supports_saved_probe = false;
  bool supports_unsaved_probe = false;
  bool supports_run_execution = false;
  bool supports_reusable_leases = false;
  bool supports_interactive_setup = false;
  std::vector<std::string> interactive_setup_connection_types;
  bool supports_template_capture = false;
  // Where a template goes into the config of an environment; absent where it is not put there.
  std::optional<std::string> template_ref_kind = {};
  std::optional<core::TemplateBinding> template_config_binding = {};
  bool supports_template_delete = false;
  bool supports_login_pty = false;
  std::string display_name;
  std::optional<std::string> description;
  std::string source;  // "builtin" or "plugin"
  std::optional<std::string> plugin_key;
  std::optional<bj::object> config_schema;
  std::optional<std::string> plugin_id;
};
BOOST_DESCRIBE_STRUCT(ProviderCapability, (),
                      (status, supports_saved_probe, supports_unsaved_probe, supports_run_execution,
                       supports_reusable_leases, supports_interactive_setup,
                       interactive_setup_connection_types, supports_template_capture,
                       template_ref_kind, template_config_binding, supports_template_delete,
                       supports_login_pty, display_name, description, source, plugin_key,
                       config_schema, plugin_id))

struct AdapterSupport {
  core::AdapterType adapter_type = core::AdapterType::process;
  std::map<std::string, Support> drivers;
  std::map<std::string, Support> sandbox_providers;
};
BOOST_DESCRIBE_STRUCT(AdapterSupport, (), (adapter_type, drivers, sandbox_providers))

struct Capabilities {
  std::vector<AdapterSupport> adapters;
  std::map<std::string, Support> drivers;
  std::map<std::string, ProviderCapability> sandbox_providers;
  // The JSON Schema of each driver's config. That of `sandbox` has the fields that the server
  // itself knows; each provider has its own schema.
  std::map<std::string, bj::object> driver_schemas = {};
};
BOOST_DESCRIBE_STRUCT(Capabilities, (), (adapters, drivers, sandbox_providers, driver_schemas))

// The plugin, and its version, that creates a sandbox.
struct PinnedPlugin {
  core::PluginId id;
  std::string version;
};

// The sandbox providers that this server knows. The API, the selection guards and the config rules
// all use it, so that what is offered and what is accepted cannot differ. Thread-safe.
class Catalog {
 public:
  struct PluginProvider {
    ProviderCapability capability;
    PinnedPlugin plugin;
  };
  // What the current plugins provide.
  struct FromPlugins {
    std::map<std::string, PluginProvider> providers;  // by provider key
    std::map<std::string, PinnedPlugin> plugins;      // by plugin key
  };

  // Starts with the built-in `fake`, which is for probes only, and with `linux`, marked as not
  // known to work on this machine.
  // What they can do is asked of their places.
  explicit Catalog(const places::Registry& places);
  // Marks the built-in `linux` as working here.
  void linux_works();

  void add(std::string key, ProviderCapability provider);
  void set_plugins(FromPlugins plugins);
  // The plugin that serves an environment with this config; empty when none is needed or none
  // matches.
  std::optional<PinnedPlugin> plugin_for(core::DriverKind driver, const bj::object& config) const;
  std::vector<core::ProviderFacts> facts() const;
  // Whether new companies get a sandbox environment on this machine besides Local.
  bool makes_sandboxes() const;
  Capabilities capabilities() const;

 private:
  // Includes plugin providers. A built-in provider wins over a plugin with the same key.
  std::map<std::string, ProviderCapability> all_providers() const;

  const places::Registry& places_;
  std::map<std::string, ProviderCapability> providers_;
  // Plugins come and go on the loop while transactions on other threads read.
  mutable std::mutex mutex_;
  FromPlugins plugins_;
};

}  // namespace berth::engine
