#pragma once

#include "base/json.hpp"
#include "core/enums.hpp"
#include "core/placement.hpp"

#include <map>

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
  bool supports_template_delete = false;
  bool supports_login_pty = false;
  std::string display_name;
  std::optional<std::string> description;
  std::string source;  // "builtin" or "plugin"
  std::optional<std::string> plugin_key;
  std::optional<bj::object> config_schema;
};
BOOST_DESCRIBE_STRUCT(ProviderCapability, (),
                      (status, supports_saved_probe, supports_unsaved_probe, supports_run_execution,
                       supports_reusable_leases, supports_interactive_setup,
                       interactive_setup_connection_types, supports_template_capture,
                       supports_template_delete, supports_login_pty, display_name, description,
                       source, plugin_key, config_schema))

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

// The sandbox providers that this server knows. The API, the selection guards and the config rules
// all ask here, so that what is offered and what is accepted cannot differ.
class Catalog {
 public:
  // Starts with the built-in `fake`, which is for probes only, and with `linux` as a provider that
  // this machine is not known to support.
  Catalog();
  // The built-in `linux` makes sandboxes here.
  void linux_works();

  void add(std::string key, ProviderCapability provider);
  std::vector<core::ProviderFacts> facts() const;
  // Whether new companies get a sandbox of this machine beside their Local environment.
  bool makes_sandboxes() const;
  Capabilities capabilities() const;

 private:
  std::map<std::string, ProviderCapability> providers_;
};

}  // namespace berth::engine
