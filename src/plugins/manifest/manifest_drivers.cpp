#include "plugins/manifest/manifest_drivers.hpp"

#include <algorithm>
#include <array>

namespace berth::plugins::rules {
namespace {

constexpr auto driver_keys = std::to_array<std::string_view>(
    {"driverKey", "kind", "displayName", "description", "configSchema", "supportsReusableLeases",
     "sandboxCapabilities", "supportsInteractiveSetup", "interactiveSetupConnectionTypes",
     "supportsTemplateCapture", "supportsTemplateDelete", "templateRefKind",
     "templateConfigBinding", "templateIdentityPaths", "supportsLoginPty",
     "supportsSetupTokenLogin", "bridge"});
constexpr auto bridge_keys = std::to_array<std::string_view>({"transport"});
constexpr auto bridge_transports = std::to_array<std::string_view>({"worker"});
constexpr auto driver_roles =
    std::to_array<std::string_view>({"environment_driver", "sandbox_provider"});
constexpr auto binding_keys = std::to_array<std::string_view>({"field", "unsetFields"});
constexpr auto capability_keys = std::to_array<std::string_view>(
    {"reusableLeases", "nativeSyncIn", "nativeSyncOut", "persistentProcessSessions",
     "independentControlCommands", "incrementalSessionOutput", "concurrentSyncOperations",
     "duplexCommandStream", "runnerWebSocketIngress"});

void read_capabilities(const ObjectReader& driver, DriverDeclaration& out,
                       std::vector<Issue>& warnings) {
  const std::optional<bool> legacy = driver.flag("supportsReusableLeases");
  core::DeclaredCapabilities& all = out.capabilities;
  all.reusable_leases = legacy;
  const bj::object* object = driver.child("sandboxCapabilities", Presence::optional);
  if (object == nullptr) return;
  const JsonAt at{driver.at(), "sandboxCapabilities"};
  const ObjectReader in{*object, at, driver.issues()};
  for (const auto& entry : *object) {
    const std::string_view key{entry.key().data(), entry.key().size()};
    if (is_among(capability_keys, key)) continue;
    warnings.push_back({JsonAt{at, key}.pointer(), "unknown-capability: is passed over"});
  }
  if (const auto nested = in.flag("reusableLeases")) all.reusable_leases = nested;
  all.native_sync_in = in.flag("nativeSyncIn");
  all.native_sync_out = in.flag("nativeSyncOut");
  all.persistent_process_sessions = in.flag("persistentProcessSessions");
  all.independent_control_commands = in.flag("independentControlCommands");
  all.incremental_session_output = in.flag("incrementalSessionOutput");
  all.concurrent_sync_operations = in.flag("concurrentSyncOperations");
  all.duplex_command_stream = in.flag("duplexCommandStream");
  out.runner_web_socket_ingress = in.flag("runnerWebSocketIngress").value_or(false);
}

std::string field_problem(std::string_view name) {
  if (characters_in(name) > 100) return "length: has more than 100 characters";
  if (!is_field_name(name)) {
    return "pattern: " + in_quotes(name) + " does not match ^[A-Za-z_][A-Za-z0-9_-]*$";
  }
  if (name == "provider") return "reserved: the host owns this field";
  return {};
}

std::optional<TemplateBinding> read_binding(const ObjectReader& driver) {
  const bj::object* object = driver.child("templateConfigBinding", Presence::optional);
  if (object == nullptr) return std::nullopt;
  const JsonAt at{driver.at(), "templateConfigBinding"};
  const ObjectReader in{*object, at, driver.issues()};
  in.only(binding_keys);
  TemplateBinding binding{.field = in.text("field", Presence::required, {1}).value_or("")};
  if (const std::string problem = field_problem(binding.field);
      !binding.field.empty() && !problem.empty()) {
    in.wrong("field", problem);
  }
  binding.unset_fields = in.texts("unsetFields", {0, 20}, {1, 100});
  const JsonAt list{at, "unsetFields"};
  for (std::size_t i = 0; i < binding.unset_fields.size(); ++i) {
    const std::string& name = binding.unset_fields[i];
    std::string problem = field_problem(name);
    if (name == binding.field) problem = "distinct: is the bound field itself";
    if (std::ranges::count(binding.unset_fields, name) > 1) {
      problem = "unique: " + in_quotes(name) + " is there twice";
    }
    if (!problem.empty()) driver.issues().add(JsonAt{list, i}, problem);
  }
  return binding;
}

// A lease's calls reach its sandbox through a bridge that the operator deploys. The worker talks to
// that bridge itself, so the host only has to know the name.
void check_bridge(const ObjectReader& driver) {
  const bj::object* object = driver.child("bridge", Presence::optional);
  if (object == nullptr) return;
  const JsonAt at{driver.at(), "bridge"};
  const ObjectReader in{*object, at, driver.issues()};
  in.only(bridge_keys);
  (void)in.one_of("transport", Presence::required, bridge_transports);
}

bool read_login(const ObjectReader& driver) {
  const std::optional<bool> now = driver.flag("supportsLoginPty");
  const std::optional<bool> old = driver.flag("supportsSetupTokenLogin");
  if (now && old && *now != *old) {
    driver.wrong("supportsSetupTokenLogin", "alias: differs from supportsLoginPty");
  }
  return now.value_or(old.value_or(false));
}

DriverDeclaration read_driver(const ObjectReader& in, std::vector<Issue>& warnings) {
  in.only(driver_keys);
  DriverDeclaration out{.driver_key = in.key_text("driverKey", Presence::required).value_or("")};
  if (const auto kind = in.one_of("kind", Presence::optional, driver_roles)) {
    out.kind = parse_name<DriverRole>(*kind);
  }
  out.display_name = in.text("displayName", Presence::required, {1, 100}).value_or("");
  out.description = in.text("description", Presence::optional, {0, 500});
  out.config_schema = in.schema("configSchema", Presence::required).value_or(bj::object{});
  read_capabilities(in, out, warnings);
  out.supports_interactive_setup = in.flag("supportsInteractiveSetup").value_or(false);
  out.interactive_setup_connection_types =
      in.texts("interactiveSetupConnectionTypes", {0, 10}, {1, 100});
  out.supports_template_capture = in.flag("supportsTemplateCapture").value_or(false);
  out.supports_template_delete = in.flag("supportsTemplateDelete").value_or(false);
  out.template_ref_kind = in.text("templateRefKind", Presence::optional, {1, 100});
  out.template_config_binding = read_binding(in);
  out.template_identity_paths = in.texts("templateIdentityPaths", {0, 20}, {1, 200});
  out.supports_login_pty = read_login(in);
  check_bridge(in);
  return out;
}

}  // namespace

std::vector<DriverDeclaration> read_drivers(const ObjectReader& manifest,
                                            std::vector<Issue>& warnings) {
  std::vector<DriverDeclaration> drivers;
  each_unique(manifest, "environmentDrivers", "driverKey",
              [&](const ObjectReader& entry) { drivers.push_back(read_driver(entry, warnings)); });
  return drivers;
}

void fold_login_alias(bj::object& manifest) {
  bj::value* drivers = manifest.if_contains("environmentDrivers");
  if (drivers == nullptr || !drivers->is_array()) return;
  for (bj::value& entry : drivers->get_array()) {
    bj::object* driver = entry.if_object();
    if (driver == nullptr) continue;
    const bj::value* old = driver->if_contains("supportsSetupTokenLogin");
    if (old == nullptr) continue;
    const bj::value flag = *old;
    driver->erase("supportsSetupTokenLogin");
    driver->insert_or_assign("supportsLoginPty", flag);
  }
}

}  // namespace berth::plugins::rules
