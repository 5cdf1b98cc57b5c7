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

// Operations on a lease's whole sandbox, while the lease is active or retained.
class Snapshots {
 public:
  Snapshots(Services& services, LeaseLifecycle& leases, TemplateCapture& templates)
      : services_(services), leases_(leases), templates_(templates) {}

  // How the sandbox differs from what it started from.
  Task<places::Changes> changes(core::Call call, core::LeaseId id);
  // Suspends all its processes until thaw. A run that works there does not notice; its time
  // continues.
  Task<LeaseView> freeze(core::Call call, core::LeaseId id);
  Task<LeaseView> thaw(core::Call call, core::LeaseId id);
  // Resets the sandbox to what it started from, or to the template; all its processes end.
  // `conflict` while a run uses it.
  Task<LeaseView> roll_back(core::Call call, core::LeaseId id, RollBackLease wanted);
  // Creates a second sandbox from this one's current state. It is held for the caller, for an hour
  // by default.
  Task<LeaseView> fork(core::Call call, core::LeaseId id, ForkLease wanted);

 private:
  struct Held {
    core::LeaseRecord lease;
    places::Place& place;
    places::PlaceRef facts;
  };
  Task<Held> place_of(LeaseLifecycle::Row row);
  Task<LeaseLifecycle::Row> mark(core::Call call, core::LeaseId id, std::string_view action,
                                 bool frozen);
  // The row records the unfinished rollback until it is done.
  Result<> intend_roll_back(store::Session& session, const core::Call& call,
                            const core::LeaseId& id, const RollBackLease& wanted,
                            const std::string& mark);
  Task<LeaseView> carry_out_roll_back(LeaseLifecycle::Row row);
  // A rollback could not remove, create or record a place. If the lease was ended meanwhile,
  // nothing else needs what exists of the place: it is destroyed, and the result is `conflict`.
  Task<LeaseView> give_up_roll_back(Held former, Error why);

  // What a fork consists of.
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
