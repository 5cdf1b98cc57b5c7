#pragma once

#include "keeper/plugin_worker/plugin_box.hpp"

#include <cstdint>
#include <span>

namespace berth::keeper {

// For a process with rights over its own network namespace. Brings up the loopback and makes every
// IPv4 address local, so that a connection to any address arrives at a door with its original
// destination. Opens the sockets through which the server provides access to the outside. Returns 0
// or errno.
int open_box_network(std::span<const std::uint16_t> ports, PluginSockets& sockets);

}  // namespace berth::keeper
