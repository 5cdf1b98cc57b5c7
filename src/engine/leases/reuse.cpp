#include "engine/leases/reuse.hpp"

#include "core/config/environment_config.hpp"

namespace berth::engine {

using core::LeasePolicy;

bool asks_for_reuse(const bj::object& config) {
  const bj::value* reuse = config.if_contains("reuseLease");
  return reuse != nullptr && reuse->is_bool() && reuse->get_bool();
}

LeasePolicy policy_of(const core::Environment& environment) {
  std::optional<LeasePolicy> asked;
  if (environment.metadata) {
    const bj::value* value = environment.metadata->if_contains("leasePolicy");
    if (value != nullptr && value->is_string()) {
      asked = parse_name<LeasePolicy>(std::string_view{value->get_string()});
    }
  }
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
    bj::value* inner = config.if_contains("driverConfig");
    own = inner != nullptr ? inner->if_object() : nullptr;
  }
  if (own != nullptr && own->contains("reuseLease")) (*own)["reuseLease"] = false;
}

}  // namespace berth::engine
