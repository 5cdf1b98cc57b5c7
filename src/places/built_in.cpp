#include "places/built_in.hpp"

#include "base/assert.hpp"
#include "core/config/environment_config.hpp"
#include "base/json/loose.hpp"

#include <algorithm>

namespace berth::providers {
namespace {

// How a plugin provider's lease is recognized as reusable: it says that it may be reused, and it
// has every value that the config requests.
bool matches_plugin_lease(const bj::object& config, const ReusableLease& lease) {
  const bool may_be_reused = lease.provider_lease_id && !lease.provider_lease_id->empty() &&
                             text_at(lease.metadata, "provider") == text_at(config, "provider") &&
                             is_true_at(lease.metadata, "reuseLease");
  return may_be_reused && std::ranges::all_of(config, [&](const auto& entry) {
           if (entry.key() == "provider" || entry.key() == "reuseLease") return true;
           const bj::value* recorded = lease.metadata.if_contains(entry.key());
           return recorded != nullptr && *recorded == entry.value();
         });
}

}  // namespace

void BuiltInProviders::add(std::unique_ptr<Provider> provider) {
  BERTH_ASSERT(core::is_provider_key(provider->key()) && !contains(provider->key()));
  providers_.push_back(std::move(provider));
}

Result<Provider*> BuiltInProviders::find(std::string_view key) const {
  const auto found = std::ranges::find_if(
      providers_, [&](const auto& provider) { return provider->key() == key; });
  if (found != providers_.end()) return found->get();
  return fail(
      Errc::provider_unavailable,
      "Sandbox provider \"" + std::string{key} + "\" is not registered as a built-in provider.",
      "install the plugin that has this provider, or choose another one");
}

bool BuiltInProviders::contains(std::string_view key) const {
  return find(key).has_value();
}

Task<AcquiredLease> BuiltInProviders::acquire(AcquireLease request,
                                              std::optional<std::string> reusable_id) const {
  BERTH_CO_TRY(Provider* const provider, find(core::provider_of(request.config)));
  if (reusable_id && is_true_at(request.config, "reuseLease")) {
    bj::object config = request.config;
    BERTH_CO_TRY(std::optional<ProviderLease> resumed,
                 co_await provider->resume(std::move(config), *std::move(reusable_id)));
    if (resumed) co_return AcquiredLease{*std::move(resumed), true};
  }
  BERTH_CO_TRY(ProviderLease fresh, co_await provider->acquire(std::move(request)));
  co_return AcquiredLease{std::move(fresh), false};
}

Task<std::vector<execution::HeldSandbox>> BuiltInProviders::held() const {
  std::vector<execution::HeldSandbox> all;
  for (const auto& provider : providers_) {
    BERTH_CO_TRY(const std::vector<core::SandboxId> some, co_await provider->held());
    for (const core::SandboxId& id : some) all.push_back({id, std::string{provider->key()}});
  }
  co_return all;
}

Task<std::vector<execution::HeldTemplate>> BuiltInProviders::held_templates() const {
  std::vector<execution::HeldTemplate> all;
  for (const auto& provider : providers_) {
    BERTH_CO_TRY(const std::vector<core::TemplateId> some, co_await provider->held_templates());
    for (const core::TemplateId& id : some) all.push_back({id, std::string{provider->key()}});
  }
  co_return all;
}

Task<> BuiltInProviders::close() const {
  Result<> outcome;
  for (const auto& provider : providers_) {
    Result<> closed = co_await provider->close();
    if (outcome) outcome = std::move(closed);
  }
  co_return outcome;
}

std::optional<std::string> BuiltInProviders::find_reusable(
    const bj::object& config, std::span<const ReusableLease> candidates) const {
  const Result<Provider*> own = find(core::provider_of(config));
  for (const ReusableLease& lease : candidates) {
    const bool fits = own ? (*own)->matches(config, lease) : matches_plugin_lease(config, lease);
    if (fits) return lease.provider_lease_id;
  }
  return std::nullopt;
}

std::optional<bj::object> BuiltInProviders::strict_config_from(
    const bj::object& lease_metadata) const {
  const std::optional<std::string> key = text_at(lease_metadata, "provider");
  const Result<Provider*> own = find(key.value_or(""));
  if (!own) return std::nullopt;
  return (*own)->config_from(lease_metadata);
}

std::optional<bj::object> BuiltInProviders::loose_config_from(
    const bj::object& lease_metadata) const {
  const std::optional<std::string> key = text_at(lease_metadata, "provider");
  if (!key || key->empty()) return std::nullopt;
  if (contains(*key)) return strict_config_from(lease_metadata);
  bj::object config = lease_metadata;
  config["provider"] = *key;
  config["reuseLease"] = is_true_at(lease_metadata, "reuseLease");
  return config;
}

}  // namespace berth::providers
