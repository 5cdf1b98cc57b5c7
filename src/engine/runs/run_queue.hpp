#pragma once

#include "core/admission.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/leases/lease_lifecycle.hpp"

// The run queue as transactions see it. core/admission decides which run may start.
namespace berth::engine {

// A run's agent and environment, as of its claim.
struct RunScene {
  std::optional<core::Environment> environment = {};
  std::optional<core::Agent> agent = {};
};

struct ClaimedRun {
  core::Stored<core::Run> run;
  LeaseLifecycle::Row lease;
  std::optional<RunScene> scene = {};  // absent: not loaded
};

struct QueueLimits {
  std::int64_t running = 0;  // on this server
  std::int64_t limit = 0;
  bool has_peers = false;  // other servers take runs too
  std::string disk = {};   // where this server's agent homes are; empty: there are none
};

// Claims the runs that may start now: each is `starting` on this node, with its lease recorded as
// intended. A run whose environment was deleted or no longer fits fails here.
Result<std::vector<ClaimedRun>> claim_queued(store::Session& session, Services& services,
                                             const Catalog& catalog, LeaseLifecycle& leases,
                                             QueueLimits limits);

// A queued run's position, and what it waits for. Empty: it starts in a moment.
Result<std::optional<core::QueuePlace>> place_in_queue(store::Session& session,
                                                       const core::Run& run, QueueLimits limits);

}  // namespace berth::engine
