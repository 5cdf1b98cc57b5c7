#pragma once

#include "base/json/json.hpp"

namespace berth::sdk {

// The value without members that are null, but for those that the protocol wants to be there:
// `exitCode`, `signal`, `providerLeaseId`, `expiresAt`, `connectionSummary`.
bj::value without_absent(bj::value value);

}  // namespace berth::sdk
