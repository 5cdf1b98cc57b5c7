#pragma once

#include "core/rows/sandbox.hpp"
#include "store/sql/mapping.hpp"

// How providers name sandboxes, and which of them are of no use any more.
namespace berth::store {

// Whether the error says that another unfinished row has the provider's name of the sandbox.
bool is_held_elsewhere(const Error& error);

// Whether an unfinished sandbox of the environment, of whatever lease, has the environment's id in
// its name: then its provider answers each acquire that asks for reuse with this very one.
Result<bool> is_named_by_environment(Session& session, const core::CompanyId& company,
                                     const core::EnvironmentId& environment);

// Begins to destroy the idle sandboxes of an environment and agent that have another fingerprint:
// no lease will ask for that one again.
Result<> retire_idle_sandboxes(Session& session, const core::Sandbox& wanted, Time now);

}  // namespace berth::store
