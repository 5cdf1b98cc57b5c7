#include "core/allowances.hpp"

#include "base/text.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"

namespace berth::core {
namespace {

std::unexpected<Error> missing(const Openings& place, const std::string& company,
                               std::string_view what, std::string_view word) {
  return fail(Errc::not_allowed_here,
              "Company " + in_quotes(company) + " may not use environment " +
                  in_quotes(place.environment) + ": " + std::string{what},
              "choose a sandbox that is walled off, or ask an instance administrator: berth "
              "company allow " +
                  in_quotes(company) + " " + std::string{word});
}

std::string listed(const std::vector<std::string>& rules) {
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "" : ", ") + rule;
  return text;
}

const bj::value* found(const bj::object& config, std::string_view key) {
  const auto field = config.find(key);
  return field == config.end() || field->value().is_null() ? nullptr : &field->value();
}

bool is_same(const bj::object& one, const bj::object& other, std::string_view key) {
  const bj::value* mine = found(one, key);
  const bj::value* theirs = found(other, key);
  if (mine == nullptr || theirs == nullptr) return mine == theirs;
  return *mine == *theirs;
}

// Whether a sandbox is kept for the next run does not affect its walls.
bj::object without_reuse(bj::object config) {
  config.erase("reuseLease");
  return config;
}

}  // namespace

Allowances Allowances::with(const AllowanceDecisions& decided) const {
  return {decided.local.value_or(local), decided.host_network.value_or(host_network),
          decided.private_egress.value_or(private_egress),
          decided.private_ssh.value_or(private_ssh), decided.weak_sandbox.value_or(weak_sandbox)};
}

std::vector<Allowance> Allowances::names() const {
  std::vector<Allowance> out;
  if (local) out.push_back(Allowance::local);
  if (host_network) out.push_back(Allowance::host_network);
  if (private_egress) out.push_back(Allowance::private_egress);
  if (private_ssh) out.push_back(Allowance::private_ssh);
  if (weak_sandbox) out.push_back(Allowance::weak_sandbox);
  return out;
}

Result<> check_allowed(const Openings& place, const std::string& company,
                       const Allowances& allowed) {
  if (place.local && !allowed.local) {
    return missing(place, company, "it runs commands on the server's machine without a sandbox",
                   "local");
  }
  if (place.host_network && !allowed.host_network) {
    return missing(place, company, "its network is the one of the server's machine",
                   "host-network");
  }
  if (!place.private_rules.empty() && !allowed.private_egress) {
    return missing(
        place, company,
        "its egress reaches addresses that are not public (" + listed(place.private_rules) + ")",
        "private-egress");
  }
  if (!place.private_host.empty() && !allowed.private_ssh) {
    return missing(
        place, company,
        "its host " + in_quotes(place.private_host) + " has an address that is not public",
        "private-ssh");
  }
  if (!place.weakening.empty() && !allowed.weak_sandbox) {
    return missing(place, company, "its sandboxes are weakened by " + place.weakening,
                   "weak-sandbox");
  }
  return {};
}

bool has_same_walls(DriverKind driver, const bj::object& config, DriverKind other_driver,
                    const bj::object& other_config) {
  if (driver != other_driver) return false;
  if (driver == DriverKind::local) return true;
  const bool is_linux =
      driver == DriverKind::sandbox && provider_of(config) == std::string{linux_provider};
  if (!is_linux) return without_reuse(config) == without_reuse(other_config);
  constexpr std::string_view walls[] = {"provider", "network",      "egress",
                                        "allow",    "minIsolation", "user"};
  return std::ranges::all_of(
      walls, [&](std::string_view key) { return is_same(config, other_config, key); });
}

}  // namespace berth::core
