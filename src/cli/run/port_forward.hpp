#pragma once

#include "cli/net/client.hpp"
#include "cli/print/console.hpp"

#include <cstdint>
#include <string>

namespace berth::cli {

struct ForwardOptions {
  std::string lease_id;
  std::uint16_t port = 0;        // of the sandbox
  std::uint16_t local_port = 0;  // on this machine's loopback; 0: any free one
  bool quiet = false;
};

// Listens on a loopback port and forwards each connection to a sandbox port, until a signal ends
// it; returns the signal. A connection that the sandbox refuses is closed, and the reason is
// written to the console.
Result<int> forward_port(const Client& server, Console& console, ForwardOptions request);

}  // namespace berth::cli
