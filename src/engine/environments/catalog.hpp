#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"
#include "core/placement.hpp"
#include "core/rows/template.hpp"

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
};
BOOST_DESCRIBE_STRUCT(Capabilities, (), (adapters, drivers, sandbox_providers))

// Which plugin, of which version, a sandbox is made by.
struct PinnedPlugin {
  core::PluginId id;
  std::string version;
};

// The sandbox providers that this server knows. The API, the selection guards and the config rules
// all ask here, so that what is offered and what is accepted cannot differ. Any thread.
class Catalog {
 public:
  struct PluginProvider {
    ProviderCapability capability;
    PinnedPlugin plugin;
  };
  // What the plugins of today bring.
  struct FromPlugins {
    std::map<std::string, PluginProvider> providers;  // by provider key
    std::map<std::string, PinnedPlugin> plugins;      // by plugin key
  };

  // Starts with the built-in `fake`, which is for probes only, and with `linux` as a provider that
  // this machine is not known to support.
  Catalog();
  // The built-in `linux` makes sandboxes here.
  void linux_works();

  void add(std::string key, ProviderCapability provider);
  void set_plugins(FromPlugins plugins);
  // The plugin that an environment of this config is served by; nothing when it needs none, or when
  // none has it.
  std::optional<PinnedPlugin> plugin_for(core::DriverKind driver, const bj::object& config) const;
  std::vector<core::ProviderFacts> facts() const;
  // Whether new companies get a sandbox of this machine beside their Local environment.
  bool makes_sandboxes() const;
  Capabilities capabilities() const;

 private:
  // With those of plugins, behind which a built-in one of the same key stands back for nobody.
  std::map<std::string, ProviderCapability> all_providers() const;

  std::map<std::string, ProviderCapability> providers_;
  // Plugins come and go on the loop while transactions of other threads ask.
  mutable std::mutex mutex_;
  FromPlugins plugins_;
};

}  // namespace berth::engine
