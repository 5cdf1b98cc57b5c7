#include "engine/catalog.hpp"

#include "core/linux_config.hpp"

namespace berth::engine {
namespace {

Support to_support(bool yes) {
  return yes ? Support::supported : Support::unsupported;
}

}  // namespace

Catalog::Catalog() {
  ProviderCapability fake;
  fake.supports_saved_probe = true;
  fake.supports_unsaved_probe = true;
  fake.display_name = "Fake";
  fake.source = "builtin";
  add("fake", std::move(fake));

  ProviderCapability own;
  own.supports_saved_probe = true;
  own.supports_unsaved_probe = true;
  own.supports_run_execution = true;
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

std::vector<core::ProviderFacts> Catalog::facts() const {
  std::vector<core::ProviderFacts> out;
  for (const auto& [key, provider] : providers_)
    out.push_back({key, provider.supports_run_execution});
  return out;
}

Capabilities Catalog::capabilities() const {
  Capabilities out;
  for (const core::DriverKind driver : all<core::DriverKind>()) {
    out.drivers.emplace(name_of(driver), to_support(driver != core::DriverKind::plugin));
  }
  for (const core::AdapterType adapter : all<core::AdapterType>()) {
    AdapterSupport support{.adapter_type = adapter, .drivers = {}, .sandbox_providers = {}};
    const std::vector<core::DriverKind> fitting = core::drivers_for(adapter);
    for (const core::DriverKind driver : all<core::DriverKind>()) {
      const bool fits = std::ranges::find(fitting, driver) != fitting.end();
      support.drivers.emplace(name_of(driver), to_support(fits));
    }
    for (const auto& [key, provider] : providers_) {
      support.sandbox_providers.emplace(key, to_support(provider.supports_run_execution));
    }
    out.adapters.push_back(std::move(support));
  }
  out.sandbox_providers = providers_;
  return out;
}

}  // namespace berth::engine
