#include "engine/leases/reuse.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/environment_policy.hpp"

namespace berth::engine {

using core::LeasePolicy;

bool asks_for_reuse(const bj::object& config) {
  return read_loosely<core::SandboxFields>(config).reuse_lease;
}

LeasePolicy policy_of(const core::Environment& environment) {
  const auto asked =
      parse_name<LeasePolicy>(core::policy_in(environment).lease_policy.value_or(""));
  if (environment.driver == core::DriverKind::sandbox && asks_for_reuse(environment.config)) {
    const bool by_workspace = asked == LeasePolicy::reuse_by_execution_workspace;
    return by_workspace ? *asked : LeasePolicy::reuse_by_environment;
  }
  return asked == LeasePolicy::retain_on_failure ? *asked : LeasePolicy::ephemeral;
}

bool lacks_reuse(const Catalog& catalog, const bj::object& config) {
  const Capabilities known = catalog.capabilities();
  const auto found = known.sandbox_providers.find(core::provider_of(config));
  if (found == known.sandbox_providers.end()) return false;
  return found->second.source == "plugin" && !found->second.supports_reusable_leases;
}

void forbid_reuse(core::DriverKind driver, bj::object& config) {
  bj::object* own = &config;
  if (driver == core::DriverKind::plugin) {
    const auto inner = config.find("driverConfig");
    own = inner != config.end() ? inner->value().if_object() : nullptr;
  }
  if (own != nullptr && own->contains("reuseLease")) (*own)["reuseLease"] = false;
}

}  // namespace berth::engine
