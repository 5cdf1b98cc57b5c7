#include "engine/environments/catalog.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"

namespace berth::engine {
namespace {

Support to_support(bool yes) {
  return yes ? Support::supported : Support::unsupported;
}

// The API shows the abilities of a place as booleans.
void show(const places::Abilities& abilities, ProviderCapability& shown) {
  const bool runs = abilities.commands != nullptr;
  const bool captures = abilities.snapshots != nullptr;
  shown.supports_run_execution = runs;
  shown.supports_template_capture = captures;
  shown.supports_template_delete = captures;
  shown.supports_interactive_setup = runs && captures;
  // Terminals of the place itself; a provider's own access is that of a plugin.
  if (shown.supports_interactive_setup) {
    shown.interactive_setup_connection_types = {"browser_terminal"};
  }
}

}  // namespace

Catalog::Catalog(const places::Registry& places) : places_(places) {
  ProviderCapability fake;
  fake.supports_saved_probe = true;
  fake.supports_unsaved_probe = true;
  fake.display_name = "Fake";
  fake.source = "builtin";
  fake.config_schema = core::fake_config_schema();
  add("fake", std::move(fake));

  ProviderCapability own;
  own.supports_saved_probe = true;
  own.supports_unsaved_probe = true;
  own.supports_reusable_leases = true;
  own.display_name = "Linux sandbox";
  own.description = "Namespaces, limits and a filter of system calls on the machine of the server.";
  own.source = "builtin";
  own.config_schema = core::linux_config_schema();
  add(std::string{core::linux_provider}, std::move(own));
}

void Catalog::linux_works() {
  providers_.at(std::string{core::linux_provider}).status = Support::supported;
}

bool Catalog::makes_sandboxes() const {
  const auto own = providers_.find(std::string{core::linux_provider});
  return own != providers_.end() && own->second.status == Support::supported;
}

void Catalog::add(std::string key, ProviderCapability provider) {
  providers_.insert_or_assign(std::move(key), std::move(provider));
}

void Catalog::set_plugins(FromPlugins plugins) {
  const std::lock_guard lock{mutex_};
  plugins_ = std::move(plugins);
}

std::optional<PinnedPlugin> Catalog::plugin_for(core::DriverKind driver,
                                                const bj::object& config) const {
  const std::lock_guard lock{mutex_};
  if (driver == core::DriverKind::plugin) {
    const auto named = read_loosely<core::PluginConfig>(config);
    const auto found = plugins_.plugins.find(named.plugin_key);
    return found != plugins_.plugins.end() ? std::optional{found->second} : std::nullopt;
  }
  if (driver != core::DriverKind::sandbox) return std::nullopt;
  const std::string key = core::provider_of(config);
  if (providers_.contains(key)) return std::nullopt;
  const auto found = plugins_.providers.find(key);
  return found != plugins_.providers.end() ? std::optional{found->second.plugin} : std::nullopt;
}

std::map<std::string, ProviderCapability> Catalog::all_providers() const {
  std::map<std::string, ProviderCapability> out = providers_;
  for (auto& [key, provider] : out) {
    const auto place = places_.find(core::DriverKind::sandbox, {{"provider", key}});
    // A place that is found by its key is this program's own.
    if (place && (*place)->abilities().found_by_key) show((*place)->abilities(), provider);
  }
  const std::lock_guard lock{mutex_};
  for (const auto& [key, provider] : plugins_.providers) out.emplace(key, provider.capability);
  return out;
}

std::vector<core::ProviderFacts> Catalog::facts() const {
  std::vector<core::ProviderFacts> out;
  for (const auto& [key, provider] : all_providers())
    out.push_back({key, provider.supports_run_execution});
  return out;
}

Capabilities Catalog::capabilities() const {
  Capabilities out;
  const std::map<std::string, ProviderCapability> providers = all_providers();
  for (const core::DriverKind driver : all<core::DriverKind>()) {
    out.drivers.emplace(name_of(driver), to_support(driver != core::DriverKind::plugin ||
                                                    providers.size() > providers_.size()));
    out.driver_schemas.emplace(name_of(driver), core::driver_config_schema(driver));
  }
  for (const core::AdapterType adapter : all<core::AdapterType>()) {
    AdapterSupport support{.adapter_type = adapter, .drivers = {}, .sandbox_providers = {}};
    const std::vector<core::DriverKind> fitting = core::drivers_for(adapter);
    for (const core::DriverKind driver : all<core::DriverKind>()) {
      const bool fits = std::ranges::find(fitting, driver) != fitting.end();
      support.drivers.emplace(name_of(driver), to_support(fits));
    }
    for (const auto& [key, provider] : providers) {
      support.sandbox_providers.emplace(key, to_support(provider.supports_run_execution));
    }
    out.adapters.push_back(std::move(support));
  }
  out.sandbox_providers = providers;
  return out;
}

}  // namespace berth::engine
