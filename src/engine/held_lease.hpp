#pragma once

#include "base/result.hpp"
#include "core/lease.hpp"

namespace berth::engine {

// A place can be looked into while its lease is active or retained, by the server that holds it.
// `conflict` says what it is instead.
Result<> expect_held(const core::LeaseRecord& lease, const core::NodeId& node);

}  // namespace berth::engine
