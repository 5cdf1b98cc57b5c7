#pragma once

#include "places/provider.hpp"

#include <memory>
#include <span>
#include <vector>

namespace berth::providers {

struct AcquiredLease : ProviderLease {
  bool resumed = false;
};

// The providers that are part of this program. All others come from plugins. Only this class knows
// which kind a provider is.
class BuiltInProviders {
 public:
  void add(std::unique_ptr<Provider> provider);

  // `Sandbox provider "<key>" is not registered as a built-in provider.`
  Result<Provider*> find(std::string_view key) const;
  bool contains(std::string_view key) const;

  // Resumes the sandbox with that id if the config allows reuse. Makes a new one if it no longer
  // exists or there is none.
  Task<AcquiredLease> acquire(AcquireLease request, std::optional<std::string> reusable_id) const;

  // The id of the first lease, in the given order, that may be reused under this config. This does
  // not take it: the caller must claim it before use.
  std::optional<std::string> find_reusable(const bj::object& config,
                                           std::span<const ReusableLease> candidates) const;

  // All providers' sandboxes that still have something on this machine.
  Task<std::vector<execution::HeldSandbox>> held() const;
  Task<std::vector<execution::HeldTemplate>> held_templates() const;
  // Closes every provider; an error in one does not keep the others open.
  Task<> close() const;

  // The config with which a lease was made. Strict: only for built-in providers. Loose: for any
  // other provider returns the metadata itself, which includes its config.
  std::optional<bj::object> strict_config_from(const bj::object& lease_metadata) const;
  std::optional<bj::object> loose_config_from(const bj::object& lease_metadata) const;

 private:
  std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace berth::providers
