#pragma once

#include "cli/net/client.hpp"
#include "cli/print/console.hpp"

#include <cstdint>
#include <string>

namespace berth::cli {

struct ForwardOptions {
  std::string lease_id;
  std::uint16_t port = 0;        // of the sandbox
  std::uint16_t local_port = 0;  // of this machine's loopback; 0: any that is free
  bool quiet = false;
};

// Listens on a port of the loopback and carries each connection to a port of a sandbox, until a
// signal ends it; the answer is the signal. A connection that the sandbox does not take is closed,
// and the reason is written to the console.
Result<int> forward_port(const Client& server, Console& console, ForwardOptions request);

}  // namespace berth::cli
