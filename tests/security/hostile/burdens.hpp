#pragma once

#include <string_view>
#include <vector>

// Programs that are hard to hold and harder to end. They refuse to run if pid 1 is not a sandbox's:
// in the network namespace with the given number, which is the host's.
namespace berth::hostile {

// burden breed HOST MARKER     forks in every generation, up to 300 processes
// burden stubborn HOST MARKER  ten daemons that ignore signals, and a parent that does
// burden stop HOST MARKER      stops the process that watches over it, and ends
// burden kill HOST MARKER      kills every process that it can reach
// burden flood HOST BYTES      BYTES bytes to stdout, in large pieces
// burden drip HOST BYTES       BYTES bytes to stdout, one at a time
// burden garbage HOST BYTES    BYTES bytes of all values and of terminal control codes
int burden(const std::vector<std::string_view>& arguments);

}  // namespace berth::hostile
