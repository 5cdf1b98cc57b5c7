#pragma once

#include "core/rows/setup_session.hpp"
#include "engine/leases/lease_lifecycle.hpp"

namespace berth::engine {

// A lease that waits for an operator, because its acquire got no response and its provider cannot
// look up what it created.
bool is_untraceable(const core::LeaseRecord& lease);
// What the operator can do about it, with the commands.
std::string way_out_of_untraceable(const core::LeaseRecord& lease);

// The request with which a session acquires its place.
Result<places::SetupRequest> request_of(store::Session& session, const core::SetupSession& started);

}  // namespace berth::engine
