#pragma once

#include "base/result.hpp"
#include "core/rows/lease.hpp"
#include "drivers/driver.hpp"
#include "store/sql/database.hpp"

namespace berth::engine {

// A place can be looked into while its lease is active or retained, by the server that holds it.
// `conflict` says what it is instead.
Result<> expect_held(const core::LeaseRecord& lease, const core::NodeId& node);
// The same, and says which server holds it.
Result<> expect_held(store::Session& session, const core::LeaseRecord& lease,
                     const core::NodeId& node);

// Whether somebody has asked for the place of a lease to stand still.
bool is_frozen(const core::LeaseRecord& lease);
// What stands still starts nothing.
Result<> expect_moving(const core::LeaseRecord& lease);

// What a command that is no run has in its environment besides what it is given.
std::map<std::string, Secret> usual_environment(const drivers::Workspace& place);

}  // namespace berth::engine
