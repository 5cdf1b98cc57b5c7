#pragma once

#include "providers/provider.hpp"

#include <memory>
#include <span>
#include <vector>

namespace berth::providers {

struct AcquiredLease : ProviderLease {
  bool resumed = false;
};

// The providers that are part of this program. All others come from plugins; which of the two a
// provider is, is known here alone.
class BuiltInProviders {
 public:
  void add(std::unique_ptr<Provider> provider);

  // `Sandbox provider "<key>" is not registered as a built-in provider.`
  Result<Provider*> find(std::string_view key) const;
  bool contains(std::string_view key) const;

  // Resumes the sandbox of that id where the config lets leases be reused; when it is gone, or
  // there is none, makes a fresh one.
  Task<AcquiredLease> acquire(AcquireLease request, std::optional<std::string> reusable_id) const;

  // The id of the first lease, in the given order, that may serve under this config. Finding is not
  // taking: whoever uses it must claim it first.
  std::optional<std::string> find_reusable(const bj::object& config,
                                           std::span<const ReusableLease> candidates) const;

  // The sandboxes of all providers that this machine still holds something of.
  Task<std::vector<execution::HeldSandbox>> held() const;
  Task<std::vector<execution::HeldTemplate>> held_templates() const;
  // Closes every provider; an error of one does not keep the others open.
  Task<> close() const;

  // The config with which a lease was made. Strict: only for built-in providers. Loose: for a
  // provider that is not built in the metadata themselves, which hold its config among others.
  std::optional<bj::object> strict_config_from(const bj::object& lease_metadata) const;
  std::optional<bj::object> loose_config_from(const bj::object& lease_metadata) const;

 private:
  std::vector<std::unique_ptr<Provider>> providers_;
};

}  // namespace berth::providers
