#pragma once

#include "base/json/json.hpp"
#include "core/capability.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

// A plugin's manifest: the rules of the format, checked before any of its code runs.
namespace berth::plugins {

// How a captured template is put into an environment's config.
struct TemplateBinding {
  std::string field;
  std::vector<std::string> unset_fields = {};
};

BOOST_DEFINE_ENUM_CLASS(DriverRole, environment_driver, sandbox_provider)

// One entry of `environmentDrivers`.
struct DriverDeclaration {
  std::string driver_key;
  std::optional<DriverRole> kind = {};  // absent: not found as a sandbox provider
  std::string display_name = {};
  std::optional<std::string> description = {};
  bj::object config_schema = {};
  core::DeclaredCapabilities capabilities = {};
  bool runner_web_socket_ingress = false;
  bool supports_interactive_setup = false;
  std::vector<std::string> interactive_setup_connection_types = {};
  bool supports_template_capture = false;
  bool supports_template_delete = false;
  std::optional<std::string> template_ref_kind = {};
  std::optional<TemplateBinding> template_config_binding = {};
  std::vector<std::string> template_identity_paths = {};
  bool supports_login_pty = false;
};

struct Manifest {
  std::string id = {};  // the plugin key
  std::string version = {};
  std::string display_name = {};
  std::string description = {};
  std::string author = {};
  std::vector<std::string> categories = {};
  std::optional<std::string> minimum_host_version = {};
  std::set<std::string> capabilities = {};
  std::string worker_entrypoint = {};  // relative to the package
  std::optional<bj::object> instance_config_schema = {};
  std::vector<DriverDeclaration> drivers = {};
  bj::object document = {};          // complete, with aliases folded, as the worker gets it
  std::vector<Issue> warnings = {};  // ignored capabilities that this host does not know

  const DriverDeclaration* find_driver(std::string_view driver_key) const;
  bool has_capability(std::string_view name) const;
};

// Fails with `plugin_manifest_invalid` and one issue per wrong field: its JSON pointer, and a
// message that begins with the rule's name ("id-pattern: ...").
Result<Manifest> parse_manifest(const bj::value& document);

// Whether a manifest may request this capability.
bool is_known_capability(std::string_view name);
// `d.d.d` with an optional pre-release and build.
bool is_semantic_version(std::string_view text);
// Negative, zero or positive, by the rules of semantic versioning. Both must be valid versions.
int compare_versions(std::string_view left, std::string_view right);
// Fails with plugin_manifest_invalid when the plugin requires a newer host.
Result<> check_host_version(const Manifest& manifest, std::string_view host_version);

}  // namespace berth::plugins
