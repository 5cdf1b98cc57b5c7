#pragma once

#include "core/rows/setup_session.hpp"
#include "engine/leases/lease_lifecycle.hpp"

namespace berth::engine {

// A lease that waits for an operator, because an acquire of it was not answered and its provider
// cannot be asked for what it made.
bool is_untraceable(const core::LeaseRecord& lease);
// What the operator does about it, in sentences with the commands.
std::string way_out_of_untraceable(const core::LeaseRecord& lease);

// How a session asks for its place.
Result<drivers::SetupRequest> request_of(store::Session& session,
                                         const core::SetupSession& started);

}  // namespace berth::engine
