#pragma once

#include "core/admission.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/leases/lease_lifecycle.hpp"

// The queue of runs as transactions see it. Which run may start is decided in core/admission.
namespace berth::engine {

// What a run is for and where it works, as they are when it is claimed.
struct RunScene {
  std::optional<core::Environment> environment = {};
  std::optional<core::Agent> agent = {};
};

struct ClaimedRun {
  core::Stored<core::Run> run;
  LeaseLifecycle::Row lease;
  std::optional<RunScene> scene = {};  // absent: nobody has looked
};

struct QueueLimits {
  std::int64_t running = 0;  // on this server
  std::int64_t limit = 0;
  bool has_peers = false;  // other servers take runs too
  std::string disk = {};   // where homes of agents on this server are; empty: there are none
};

// Takes the runs that may start now: each is `starting` on this node, with the intention of its
// lease. One whose environment is gone or does not fit any more fails here.
Result<std::vector<ClaimedRun>> claim_queued(store::Session& session, Services& services,
                                             const Catalog& catalog, LeaseLifecycle& leases,
                                             QueueLimits limits);

// Where a queued run stands, and what it waits for. Nothing: it starts in a moment.
Result<std::optional<core::QueuePlace>> place_in_queue(store::Session& session,
                                                       const core::Run& run, QueueLimits limits);

}  // namespace berth::engine
