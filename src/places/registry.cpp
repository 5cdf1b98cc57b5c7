#include "places/registry.hpp"

#include "base/assert.hpp"
#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"

namespace berth::places {

PlaceRef HeldPlace::ref() const {
  PlaceRef out{.key = key, .driver = driver, .sandbox_id = key.sandbox()};
  if (!provider.empty()) out.config["provider"] = provider;
  return out;
}

void Registry::add(core::DriverKind driver, std::unique_ptr<Place> place) {
  drivers_.insert_or_assign(driver, std::move(place));
}

void Registry::add_provider(std::string provider, std::unique_ptr<Place> place) {
  BERTH_ASSERT(core::is_provider_key(provider) && !providers_.contains(provider));
  providers_.emplace(std::move(provider), std::move(place));
}

void Registry::add_plugins(Place& sandboxes, Place& drivers) {
  plugin_sandboxes_ = &sandboxes;
  plugin_drivers_ = &drivers;
}

Result<Place*> Registry::find(core::DriverKind driver, const bj::object& config,
                              const bj::object& metadata) const {
  const auto own = drivers_.find(driver);
  if (own != drivers_.end()) return own->second.get();
  if (driver == core::DriverKind::plugin && plugin_drivers_ != nullptr) return plugin_drivers_;
  const bool has_sandboxes = plugin_sandboxes_ != nullptr || !providers_.empty();
  if (driver != core::DriverKind::sandbox || !has_sandboxes) {
    return fail(Errc::unsupported_environment,
                "Environment driver \"" + std::string{name_of(driver)} +
                    "\" is not registered in the environment runtime yet.",
                "choose an environment with another driver");
  }
  std::string provider = core::provider_of(config);
  if (plugin_sandboxes_ != nullptr && !providers_.contains(provider)) return plugin_sandboxes_;
  const std::string recorded = text_in(metadata, "provider").value_or("");
  if (!recorded.empty()) provider = recorded;
  const auto found = providers_.find(provider);
  if (found != providers_.end()) return found->second.get();
  return absent_.get();
}

Task<std::vector<HeldPlace>> Registry::held(core::DriverKind driver) const {
  std::vector<HeldPlace> all;
  const auto own = drivers_.find(driver);
  if (own != drivers_.end()) {
    BERTH_CO_TRY(const std::vector<PlaceKey> keys, co_await own->second->held());
    for (const PlaceKey& key : keys) all.push_back({.key = key, .driver = driver});
    co_return all;
  }
  if (driver != core::DriverKind::sandbox) co_return all;
  for (const auto& [provider, place] : providers_) {
    BERTH_CO_TRY(const std::vector<PlaceKey> keys, co_await place->held());
    for (const PlaceKey& key : keys) all.push_back({key, driver, provider});
  }
  co_return all;
}

Task<std::vector<HeldTemplate>> Registry::held_templates() const {
  std::vector<HeldTemplate> all;
  for (const auto& [provider, place] : providers_) {
    Snapshots* const snapshots = place->abilities().snapshots;
    if (snapshots == nullptr) continue;
    BERTH_CO_TRY(const std::vector<core::TemplateId> some, co_await snapshots->held_templates());
    for (const core::TemplateId& id : some) all.push_back({id, provider});
  }
  co_return all;
}

Task<> Registry::close() {
  Result<> all;
  for (const auto& [driver, place] : drivers_) {
    Result<> closed = co_await place->close();
    if (!closed) all = std::move(closed);
  }
  for (const auto& [provider, place] : providers_) {
    Result<> closed = co_await place->close();
    if (!closed) all = std::move(closed);
  }
  co_return all;
}

}  // namespace berth::places
