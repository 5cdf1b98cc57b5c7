#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <vector>

// What a company may use of the server's machine without a wall between. Asked by the same function
// when an environment is saved, when it is selected, when a run is made and when a place is taken.
namespace berth::core {

BOOST_DEFINE_ENUM_CLASS(Allowance,
                        local,           // environments of the driver `local`
                        host_network,    // `network: host` of the sandbox provider `linux`
                        private_egress,  // `egress.allow` of addresses that are not public
                        private_ssh,     // hosts behind SSH whose addresses are not public
                        weak_sandbox)    // nested user namespaces, and isolation `minimal`

// What an instance administrator has decided for one company. Absent: as Allowances by default are.
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

// What is in force.
struct Allowances {
  bool local = false;
  bool host_network = false;
  bool private_egress = false;
  bool private_ssh = false;
  bool weak_sandbox = false;

  // Where one operator owns the machine.
  static constexpr Allowances all() { return {true, true, true, true, true}; }
  Allowances with(const AllowanceDecisions& decided) const;
  std::vector<Allowance> names() const;

  friend bool operator==(const Allowances&, const Allowances&) = default;
};

// An environment, and what of the machine it reaches.
struct Openings {
  std::string environment;  // its name
  bool local = false;
  bool host_network = false;
  std::vector<std::string> private_rules = {};  // those of `egress.allow`, as they are written
  std::string private_host = {};  // of an SSH environment, where its address is not public
  std::string weakening = {};     // of a sandbox, as its config asks for it
};

// Whether a company may use an environment. not_allowed_here names the environment, the company and
// what is missing, and how an instance administrator allows it.
Result<> check_allowed(const Openings& place, const std::string& company,
                       const Allowances& allowed);

// Whether a place is walled off as another is: the same driver and provider, and where `linux`
// makes the walls, the same network, way out, weakenings and user. Of other providers the whole
// config counts, since nobody here knows what in it is a wall.
bool has_same_walls(DriverKind driver, const bj::object& config, DriverKind other_driver,
                    const bj::object& other_config);

}  // namespace berth::core
