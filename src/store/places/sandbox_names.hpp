#pragma once

#include "core/rows/sandbox.hpp"
#include "store/sql/mapping.hpp"

// How providers name sandboxes, and which idle sandboxes are obsolete.
namespace berth::store {

// Whether the error means that another unfinished row has this provider id.
bool is_held_elsewhere(const Error& error);

// Whether any unfinished sandbox of the environment has the environment's id in its provider id. If
// so, the provider returns this same sandbox for each acquire that asks for reuse.
Result<bool> is_named_by_environment(Session& session, const core::CompanyId& company,
                                     const core::EnvironmentId& environment);

// Begins to destroy the idle sandboxes of the same environment, agent and workspace that have
// another fingerprint: no lease will ask for that one again.
Result<> retire_idle_sandboxes(Session& session, const core::Sandbox& wanted, Time now);

}  // namespace berth::store
