#pragma once

#include "base/json/json.hpp"

namespace berth::sdk {

// The value without null members, except those that the protocol requires: `exitCode`, `signal`,
// `providerLeaseId`, `expiresAt`, `connectionSummary`.
bj::value without_absent(bj::value value);

}  // namespace berth::sdk
