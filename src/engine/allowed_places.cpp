#include "engine/allowed_places.hpp"

#include "core/environment_config.hpp"
#include "core/linux_config.hpp"
#include "egress/policy.hpp"
#include "egress/resolver.hpp"
#include "store/companies.hpp"
#include "store/environments.hpp"

namespace berth::engine {
namespace {

bool opens_nothing(const core::Openings& place) {
  return !place.local && !place.host_network && place.private_rules.empty();
}

// A policy that cannot be read opens nothing: no sandbox is made with it.
std::vector<std::string> private_rules_of(const bj::object& config) {
  const bj::value* rules = config.if_contains("egress");
  if (rules == nullptr) return {};
  std::vector<egress::SpecialRange> special = egress::special_ranges();
  for (egress::SpecialRange& own : egress::addresses_of_this_machine()) {
    special.push_back(std::move(own));
  }
  const Result<egress::Policy> policy = egress::Policy::decode(*rules, std::move(special));
  return policy ? policy->private_rules() : std::vector<std::string>{};
}

}  // namespace

core::Openings openings_of(std::string environment, core::DriverKind driver,
                           const bj::object& config) {
  core::Openings place{.environment = std::move(environment),
                       .local = driver == core::DriverKind::local};
  const bool is_linux = driver == core::DriverKind::sandbox &&
                        core::provider_of(config) == std::string{core::linux_provider};
  if (!is_linux) return place;
  const bj::value* network = config.if_contains("network");
  place.host_network =
      network != nullptr && network->is_string() && network->get_string() == "host";
  place.private_rules = private_rules_of(config);
  return place;
}

core::Allowances allowed_to(const Means& means, const core::Company& company) {
  return means.allowed_by_default.with(company.allowances);
}

Result<> expect_allowed(store::Session& session, const Means& means, const core::CompanyId& company,
                        const core::Openings& place) {
  if (opens_nothing(place)) return {};
  BERTH_TRY(const auto row, store::find_company(session, core::Reach::everything(), company));
  return core::check_allowed(place, row.value.name, allowed_to(means, row.value));
}

Result<> expect_allowed(store::Session& session, const Means& means,
                        const core::Environment& environment) {
  return expect_allowed(session, means, environment.company_id,
                        openings_of(environment.name, environment.driver, environment.config));
}

Result<> expect_allowed(store::Session& session, const Means& means,
                        const core::LeaseRecord& lease) {
  core::Openings place = openings_of("", lease.driver, lease.teardown.config);
  if (opens_nothing(place)) return {};
  if (lease.environment_id) {
    const auto found =
        store::find_environment(session, core::Reach::everything(), *lease.environment_id);
    if (found) place.environment = found->value.name;
  }
  return expect_allowed(session, means, lease.company_id, place);
}

}  // namespace berth::engine
