#pragma once

#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "engine/environments/catalog.hpp"

// Whether sandboxes of an environment serve several runs, one after the other.
namespace berth::engine {

// Exactly true: neither 1 nor "true".
bool asks_for_reuse(const bj::object& config);
// The environment may ask for a policy in its metadata; a sandbox's config asks for reuse.
core::LeasePolicy policy_of(const core::Environment& environment);
// Whether the provider of this config comes from a plugin that does not offer reusable leases, as
// the plugin is today.
bool lacks_reuse(const Catalog& catalog, const bj::object& config);
// In the config of a lease whose sandbox serves nobody else: a provider that is asked to keep a
// sandbox keeps it, although no lease would ever find it.
void forbid_reuse(core::DriverKind driver, bj::object& config);

}  // namespace berth::engine
