#pragma once

#include "drivers/ssh/target.hpp"
#include "egress/resolver.hpp"

#include <string>
#include <vector>

namespace berth::drivers::ssh {

// An address of a host as ssh connects to it.
struct HostAddress {
  std::string text;
  bool is_private = false;  // not of the public internet, or of this machine
};

// Looks the target's name up, once: ssh is given an address of the answer and looks nothing up, so
// that what was checked is what is connected to. Where the target may not reach addresses that are
// not public, one of them among the answer refuses them all.
Task<std::vector<HostAddress>> find_host(const Target& target, egress::Resolver& resolver);

// The one error for a company that may not reach private addresses, whatever kept the server from
// the host: a wrong name, a closed port, silence, or the address itself. With an error for each,
// the server would be a scanner of the networks that it stands in.
Error not_reached(const Target& target);

}  // namespace berth::drivers::ssh
