#pragma once

#include "keeper/plugin_worker/plugin_box.hpp"

#include <cstdint>
#include <span>

namespace berth::keeper {

// In a network namespace of its own, with the rights over it: raises the loopback, makes every IPv4
// address local, so that a connection to any of them arrives at a door with the address that was
// meant, and opens the sockets on which the server is the way out. 0 or errno.
int open_box_network(std::span<const std::uint16_t> ports, PluginSockets& sockets);

}  // namespace berth::keeper
