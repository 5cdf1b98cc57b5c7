#include "engine/environments/allowed_places.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "egress/policy.hpp"
#include "egress/resolver.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

bool opens_nothing(const core::Openings& place) {
  return !place.local && !place.host_network && place.private_rules.empty() &&
         place.private_host.empty() && place.weakening.empty();
}

// An unreadable policy opens nothing, because no sandbox is created with it.
std::vector<std::string> private_rules_of(const bj::object& config) {
  const auto rules = peek<bj::value>(config, "egress");
  if (!rules) return {};
  const Result<egress::Policy> policy =
      egress::Policy::decode(*rules, egress::addresses_that_are_not_public());
  return policy ? policy->private_rules() : std::vector<std::string>{};
}

// A host given as an address. What a name resolves to is only known when the driver connects.
std::string private_host_of(const bj::object& config) {
  const std::string host = peek<std::string>(config, "host").value_or("");
  const auto address = egress::Address::parse(host);
  const bool is_private =
      address && egress::is_among(*address, egress::addresses_that_are_not_public());
  return is_private ? host : std::string{};
}

std::string weakening_of(const core::LinuxConfig& config) {
  if (config.min_isolation == core::Isolation::minimal) return "minIsolation: minimal";
  using Allowed = std::vector<core::LinuxAllowance>;
  const Allowed allowed = config.allow.value_or(Allowed{});
  const bool nests =
      std::ranges::find(allowed, core::LinuxAllowance::nested_user_namespaces) != allowed.end();
  return nests ? "allow: nested_user_namespaces" : "";
}

// What the driver recorded about the connection it made for a lease.
bool was_private(const core::LeaseRecord& lease) {
  return peek<bool>(lease.metadata, "privateAddress").value_or(false);
}

}  // namespace

core::Openings openings_of(std::string environment, core::DriverKind driver,
                           const bj::object& config) {
  core::Openings place{.environment = std::move(environment),
                       .local = driver == core::DriverKind::local};
  if (driver == core::DriverKind::ssh) place.private_host = private_host_of(config);
  const bool is_linux = driver == core::DriverKind::sandbox &&
                        core::provider_of(config) == std::string{core::linux_provider};
  if (!is_linux) return place;
  const auto sandbox = read_loosely<core::LinuxConfig>(config);
  place.host_network = sandbox.network == core::LinuxNetwork::host;
  place.private_rules = private_rules_of(config);
  place.weakening = weakening_of(sandbox);
  return place;
}

core::Allowances allowed_to(const Services& services, const core::Company& company) {
  return services.allowed_by_default.with(company.allowances);
}

Result<places::PrivateAddresses> private_addresses(store::Session& session,
                                                   const Services& services,
                                                   const core::LeaseRecord& lease) {
  using places::PrivateAddresses;
  // Running work continues to its end and is torn down, even if it is forbidden by now.
  if (was_private(lease)) return PrivateAddresses::reachable;
  BERTH_TRY(const auto row,
            store::find_company(session, core::Reach::everything(), lease.company_id));
  return allowed_to(services, row.value).private_ssh ? PrivateAddresses::reachable
                                                     : PrivateAddresses::refused;
}

Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::CompanyId& company, const core::Openings& place) {
  if (opens_nothing(place)) return {};
  BERTH_TRY(const auto row, store::find_company(session, core::Reach::everything(), company));
  return core::check_allowed(place, row.value.name, allowed_to(services, row.value));
}

Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::Environment& environment) {
  return expect_allowed(session, services, environment.company_id,
                        openings_of(environment.name, environment.driver, environment.config));
}

Result<> expect_allowed(store::Session& session, const Services& services,
                        const core::LeaseRecord& lease) {
  core::Openings place = openings_of("", lease.driver, lease.teardown.config);
  if (was_private(lease))
    place.private_host = peek<std::string>(lease.teardown.config, "host").value_or("");
  if (opens_nothing(place)) return {};
  if (lease.environment_id) {
    const auto found =
        store::find_environment(session, core::Reach::everything(), *lease.environment_id);
    if (found) place.environment = found->value.name;
  }
  return expect_allowed(session, services, lease.company_id, place);
}

}  // namespace berth::engine
