#pragma once

#include "base/result.hpp"
#include "core/rows/lease.hpp"
#include "places/place.hpp"
#include "store/sql/database.hpp"

namespace berth::engine {

// A place can be accessed while its lease is active or retained, by the server that holds it.
// `conflict` reports the actual state.
Result<> expect_held(const core::LeaseRecord& lease, const core::NodeId& node);
// The same, and the error names the server that holds it.
Result<> expect_held(store::Session& session, const core::LeaseRecord& lease,
                     const core::NodeId& node);

// Whether an operator has frozen the lease's place.
bool is_frozen(const core::LeaseRecord& lease);
// A frozen place cannot start anything.
Result<> expect_moving(const core::LeaseRecord& lease);

// The default environment of a command that is not a run.
std::map<std::string, Secret> usual_environment(const places::Workspace& place);

}  // namespace berth::engine
