#pragma once

#include "engine/services.hpp"

// Secrets of the installation itself. They are rows, not files, so that all servers of one database
// share them.
namespace berth::engine {

// The random bytes stored under this name; the first call creates them.
Task<Secret> ensure_sealed_random(Services& services, std::string name, std::size_t bytes);

// For a master key rotation: reseals all of them with the current key. Resumes after a crash.
Task<> reseal_settings(Services& services);

}  // namespace berth::engine
