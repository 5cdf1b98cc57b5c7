#pragma once

#include "core/rows/secret.hpp"
#include "engine/services.hpp"

// The seals of secret values. Each is bound to its secret and version number and does not open in
// another row.
namespace berth::engine {

// The context a value is sealed for: "secret:ID:2".
std::string seal_context(const core::SecretId& secret, std::int64_t number);

Result<Secret> unseal_version(Services& services, const core::SecretVersion& version);
// For a master key rotation: the same value, sealed with the current key.
Result<core::SecretVersion> resealed_version(Services& services,
                                             const core::SecretVersion& version);

}  // namespace berth::engine
