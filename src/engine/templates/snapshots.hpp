#pragma once

#include "core/call.hpp"
#include "engine/leases/leases.hpp"
#include "engine/templates/template_capture.hpp"

#include <set>

namespace berth::engine {

struct RollBackLease {
  std::optional<std::string> template_;  // by name or id; absent: what it started from
};
BOOST_DESCRIBE_STRUCT(RollBackLease, (), (template_))

struct ForkLease {
  std::optional<std::int64_t> ttl_seconds;
};
BOOST_DESCRIBE_STRUCT(ForkLease, (), (ttl_seconds))

// What operators do with the sandbox of a lease as a whole, while the lease is active or retained.
class Snapshots {
 public:
  Snapshots(Services& services, LeaseLifecycle& leases, TemplateCapture& templates)
      : services_(services), leases_(leases), templates_(templates) {}

  // What differs from what the sandbox started from.
  Task<execution::Changes> changes(core::Call call, core::LeaseId id);
  // All its processes stand still until thaw. A run that works there does not notice; its time
  // goes on.
  Task<LeaseView> freeze(core::Call call, core::LeaseId id);
  Task<LeaseView> thaw(core::Call call, core::LeaseId id);
  // The sandbox becomes what it started from, or the template; all its processes end. `conflict`
  // while a run works with it.
  Task<LeaseView> roll_back(core::Call call, core::LeaseId id, RollBackLease wanted);
  // A second sandbox that begins as this one is now. It is held for whoever asked, for an hour
  // unless they say otherwise.
  Task<LeaseView> fork(core::Call call, core::LeaseId id, ForkLease wanted);

 private:
  struct Place {
    core::LeaseRecord lease;
    drivers::Driver* driver;
    drivers::PlaceRef facts;
  };
  Task<Place> place_of(LeaseLifecycle::Row row);
  Task<LeaseLifecycle::Row> mark(core::Call call, core::LeaseId id, std::string_view action,
                                 bool frozen);
  // The row says which rollback is not done yet, until one is.
  Result<> intend_roll_back(store::Session& session, const core::Call& call,
                            const core::LeaseId& id, const RollBackLease& wanted,
                            const std::string& mark);
  Task<LeaseView> carry_out_roll_back(LeaseLifecycle::Row row);
  // A rollback could not remove, make or record a place. Where the lease was ended meanwhile,
  // nobody else asks for what there may be of it: it goes, and the answer is `conflict`.
  Task<LeaseView> give_up_roll_back(Place place, Error why);

  // What a fork is made of.
  struct Fork {
    core::LeaseId id;
    TemplateCapture::Row made;
    core::LeaseRecord lease;
    core::Environment environment;
  };
  Result<Fork> intend_fork(store::Session& session, const core::Call& call,
                           const core::LeaseId& id);
  Task<LeaseView> fork_once(core::Call call, core::LeaseId id, std::int64_t ttl_seconds);
  Task<LeaseView> make_fork(Fork begun, std::int64_t ttl_seconds);

  Services& services_;
  LeaseLifecycle& leases_;
  TemplateCapture& templates_;
  // By this server, at this moment.
  std::set<core::LeaseId> rolling_back_;
  std::set<std::string> forking_;  // callers and their keys
};

}  // namespace berth::engine
