#pragma once

#include "engine/services.hpp"

// Secrets of the installation itself. They are rows, not files, so that all servers of one database
// have the same ones.
namespace berth::engine {

// The random bytes that are kept under this name; whoever asks first makes them.
Task<Secret> ensure_sealed_random(Services& services, std::string name, std::size_t bytes);

// For a rotation of the master key: seals all of them with the current one. Begins where a crash
// left it.
Task<> reseal_settings(Services& services);

}  // namespace berth::engine
