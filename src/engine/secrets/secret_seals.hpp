#pragma once

#include "core/rows/secret.hpp"
#include "engine/services.hpp"

// The seals of secret values. Each is bound to its secret and its number: in another row it does
// not open.
namespace berth::engine {

// What a value is sealed for: "secret:ID:2".
std::string seal_context(const core::SecretId& secret, std::int64_t number);

Result<Secret> unseal_version(Services& services, const core::SecretVersion& version);
// For a rotation of the master key: the same value, sealed with the current one.
Result<core::SecretVersion> resealed_version(Services& services,
                                             const core::SecretVersion& version);

}  // namespace berth::engine
