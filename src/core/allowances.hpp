#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <vector>

// What a company may use of the server's machine without a wall in between. The same function
// decides when an environment is saved, when it is selected, when a run is created and when a place
// is acquired.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(Allowance,
                        local,           // environments with driver `local`
                        host_network,    // `network: host` of sandbox provider `linux`
                        private_egress,  // `egress.allow` with non-public addresses
                        private_ssh,     // SSH hosts with non-public addresses
                        weak_sandbox)    // nested user namespaces, and isolation `minimal`

// What an instance administrator has decided for one company. Absent: the default of Allowances.
struct AllowanceDecisions {
  std::optional<bool> local = {};
  std::optional<bool> host_network = {};
  std::optional<bool> private_egress = {};
  std::optional<bool> private_ssh = {};
  std::optional<bool> weak_sandbox = {};

  friend bool operator==(const AllowanceDecisions&, const AllowanceDecisions&) = default;
};
BOOST_DESCRIBE_STRUCT(AllowanceDecisions, (),
                      (local, host_network, private_egress, private_ssh, weak_sandbox))

// The allowances in effect.
struct Allowances {
  bool local = false;
  bool host_network = false;
  bool private_egress = false;
  bool private_ssh = false;
  bool weak_sandbox = false;

  // For a machine owned by a single operator.
  static constexpr Allowances all() { return {true, true, true, true, true}; }
  Allowances with(const AllowanceDecisions& decided) const;
  std::vector<Allowance> names() const;

  friend bool operator==(const Allowances&, const Allowances&) = default;
};

// An environment, and which parts of the machine it can reach.
struct Openings {
  std::string environment;  // its name
  bool local = false;
  bool host_network = false;
  std::vector<std::string> private_rules = {};  // the private entries of `egress.allow`, as written
  std::string private_host = {};  // host of an SSH environment whose address is not public
  std::string weakening = {};     // the weakening that a sandbox's config requests
};

// Whether a company may use an environment. not_allowed_here names the environment, the company,
// what is missing, and how an instance administrator allows it.
Result<> check_allowed(const Openings& place, const std::string& company,
                       const Allowances& allowed);

// Whether one place is as isolated as another: the same driver and provider. For `linux`, also the
// same network, egress, weakenings and user. For other providers the whole config except reuse must
// match, since Berth cannot know which fields affect isolation.
bool has_same_walls(DriverKind driver, const bj::object& config, DriverKind other_driver,
                    const bj::object& other_config);

}  // namespace berth::core
