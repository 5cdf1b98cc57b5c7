#pragma once

#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "engine/environments/catalog.hpp"

// Whether an environment's sandboxes serve several runs, one after another.
namespace berth::engine {

// Exactly true: neither 1 nor "true".
bool asks_for_reuse(const bj::object& config);
// The environment's metadata may request a policy; a sandbox's config may request reuse.
core::LeasePolicy policy_of(const core::Environment& environment);
// Whether this config's provider comes from a plugin that currently does not offer reusable leases.
bool lacks_reuse(const Catalog& catalog, const bj::object& config);
// For the config of a lease whose sandbox is not reused: a provider that is asked to keep a sandbox
// would keep it, although no lease would ever find it.
void forbid_reuse(core::DriverKind driver, bj::object& config);

}  // namespace berth::engine
