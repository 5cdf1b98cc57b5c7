#pragma once

#include "egress/resolver.hpp"
#include "places/ssh/target.hpp"

#include <string>
#include <vector>

namespace berth::places::ssh {

// An address of a host as ssh connects to it.
struct HostAddress {
  std::string text;
  bool is_private = false;  // not on the public internet, or this machine's
};

// Looks up the target's name once: ssh gets an address from the answer and does no look-up, so the
// checked address is the one that is connected to. If the target may not reach private addresses,
// one private address in the answer rejects them all.
Task<std::vector<HostAddress>> find_host(const Target& target, egress::Resolver& resolver);

// The single error for a company that may not reach private addresses, whatever the cause: a wrong
// name, a closed port, a timeout, or the address itself. With different errors the server could be
// used to scan its own networks.
Error not_reached(const Target& target);

}  // namespace berth::places::ssh
