#pragma once

#include "core/config/bindings.hpp"
#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/run.hpp"
#include "core/rows/sandbox.hpp"
#include "core/rows/template.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/services.hpp"
#include "places/registry.hpp"

#include <functional>

namespace berth::engine {

// Acquires and releases places: the intent is recorded, the driver acts, the result is recorded.
// Each step can be repeated, so that any server can bring a lease to its end from any state. Only
// the lease's own row is used, never the current environment.
class LeaseLifecycle {
 public:
  using Row = core::Stored<core::LeaseRecord>;

  // `hold_ms`: how long the place of a dead server may live on.
  LeaseLifecycle(Services& services, const places::Registry& places, Secrets& secrets,
                 const Catalog& catalog, core::NodeId node, std::int64_t hold_ms)
      : services_(services),
        places_(places),
        secrets_(secrets),
        catalog_(catalog),
        node_(std::move(node)),
        hold_ms_(hold_ms) {}

  const core::NodeId& node() const { return node_; }
  // Whether this server can act on the place: a place on one server's machine is reachable only
  // there.
  bool reaches(const core::LeaseRecord& lease) const;
  bool reaches(const core::Sandbox& sandbox) const;

  struct Terms {
    std::optional<Time> expires_at = {};
    // The template to start from, instead of the environment's.
    std::optional<core::TemplateId> from = {};
    enum class After { restart_ends_it, restart_keeps_it } after = After::restart_ends_it;
    std::optional<core::SetupSessionId> setup = {};  // the session it is acquired for
    // No run uses the sandbox of a test, so a provider that would pause it archives it instead.
    enum class Purpose { work, test } purpose = Purpose::work;
    std::optional<core::AgentHomeId> home = {};
    // The idle sandbox to lease, by the same rules as for a run of its agent. `conflict` if those
    // rules would not give it to any run.
    struct Kept {
      core::SandboxId sandbox_id;
      std::optional<core::AgentId> agent_id = {};
    };
    std::optional<Kept> kept = {};
  };
  // In the caller's transaction: records an `acquiring` lease and, for drivers with sandboxes, a
  // sandbox that is claimed for it or about to be created. Without a run it is an ad-hoc lease,
  // whose sandbox is not reused unless it was a kept one.
  Result<Row> intend(store::Session& session, core::LeaseId id,
                     const core::Environment& environment, const core::Run* run, Terms terms);

  // The driver's view of a lease. Secrets are read now, each with its access event.
  Task<places::PlaceRef> facts(const core::LeaseRecord& lease);
  // The same for a template, whose lease may have ended long ago. Deleted secrets are left out.
  Task<places::PlaceRef> facts(const core::Template& row);
  // The same for a sandbox that no lease holds.
  Task<places::PlaceRef> facts(const core::Sandbox& sandbox);
  Result<places::Place*> place_of(const core::LeaseRecord& lease) const;
  Result<places::Place*> place_of(const core::Sandbox& sandbox) const;
  Result<places::Place*> place_of(const places::PlaceRef& ref) const { return places_.find(ref); }
  // Where a template was captured.
  Result<places::Place*> place_of(const core::Template& row) const;

  struct Ask {
    places::Callback callback = {};
    std::optional<places::SetupRequest> setup = {};
    // Whether the provider may already have been asked for this lease, by a dead server or by an
    // attempt that got no response.
    enum class Before { never, maybe } before = Before::never;
  };
  struct Held {
    Row lease;
    places::PlaceRef facts;
    bool resumed = false;  // the claimed sandbox, not a new one in its place
  };
  using Also = std::function<Result<>(store::Session&)>;
  // Acquires the place and records the driver's response: `active`. Writes by `also` are part of
  // the same transaction. lease_acquire_failed if the result of an earlier request cannot be found
  // again.
  Task<Held> acquire(Row lease, Ask ask, Also also);
  // Whether a failed acquire means that nothing was created: it was never sent, or it was refused.
  // A provider that refuses has cleaned up.
  static bool made_none(Errc code);

  // In the caller's transaction: a held lease gets a fresh place instead of its former one.
  // `conflict` if it is no longer held; the caller must then remove the place.
  Result<Row> record_again(store::Session& session, const core::LeaseId& id,
                           const places::Acquired& acquired);

  // In the transaction that ends the run: the lease begins to end with the run's outcome. Under
  // retain_on_failure, a failed run's lease is retained instead.
  Result<Row> begin_release(store::Session& session, Row lease, core::LeaseEvent how);
  // Nothing works in a retained place, so nothing renews it. This renews it once, until it is given
  // back. The server that retains it does so, and then a sweeper once more.
  Task<> keep(const core::LeaseRecord& lease, const places::PlaceRef& known);
  // What a place has used, for the final rows; empty if it is not measured.
  Task<std::optional<bj::object>> measure(const core::LeaseRecord& lease,
                                          const places::PlaceRef& known);
  // Brings an unused lease to its end. If that fails, the row records why and when the next attempt
  // is due, and that row is returned. A place that this server cannot reach is left to the server
  // that can. If that server is dead, the lease waits until its keepers have ended by themselves.
  Task<Row> settle(Row lease);
  // The same for an unused sandbox.
  Task<> settle(core::Stored<core::Sandbox> sandbox);
  // On an operator's order, in the caller's transaction: names the sandbox that a parked lease
  // waits for; it is destroyed with the lease. `conflict` if another lease holds it.
  Result<Row> adopt(store::Session& session, Row lease, std::string provider_lease_id);
  // On an operator's order: ends the lease and its sandbox, whatever the provider still holds.
  Result<Row> force_end(store::Session& session, Row lease, const std::string& reason);

  // Reads a secret that an environment draft names.
  Task<ResolvedSecret> read_for_draft(const core::Call& call, const core::CompanyId& company,
                                      const core::BoundRef& bound);

  // What this machine itself holds, and the removal of what no lease needs any more.
  Task<std::vector<places::HeldPlace>> held(core::DriverKind driver);
  Task<> remove_held(places::HeldPlace held);
  Task<std::vector<places::HeldTemplate>> held_templates();
  Task<bool> delete_held(places::HeldTemplate held);

 private:
  Task<places::Acquired> acquire_again(places::Place& place, places::AcquireRequest request);
  // Repeats the unanswered request twice under the same key: a provider that names sandboxes by
  // their run returns the same one each time. The verdict, and what to destroy, is on the row.
  Task<Row> trace(places::Place& place, places::AcquireRequest request);
  Task<> end_unanswered(core::LeaseId id);
  Task<> destroy_strays(places::Place& place, Row row, const places::PlaceRef& known);
  using Change = std::function<void(core::LeaseRecord&)>;
  Task<Row> change_lease(core::LeaseId id, Change change);
  Result<Row> park_unanswered(store::Session& session, Row row);

  Result<> intend_sandbox(store::Session& session, const core::Environment& environment,
                          const std::optional<core::AgentId>& agent, core::LeaseRecord& lease);
  Result<> intend_visit(store::Session& session, const core::Environment& environment,
                        const Terms::Kept& kept, core::LeaseRecord& lease);
  Result<bool> claim_kept(store::Session& session, const core::Sandbox& wanted,
                          std::optional<core::SandboxId> only, core::LeaseRecord& lease);
  Result<Row> record_acquired(store::Session& session, const core::LeaseId& id,
                              const places::Acquired& acquired);
  // Reads the secrets that the config names.
  Task<> add_secrets(places::PlaceRef& place, const core::Call& call);
  Task<> act(core::LeaseRecord lease);
  Task<> destroy(const core::Sandbox& sandbox);
  // When nothing remains of what that server held; empty while it is alive.
  Result<std::optional<Time>> gone_with(store::Session& session,
                                        const std::optional<core::NodeId>& server) const;
  Result<Row> leave(store::Session& session, const core::LeaseId& id);
  Result<> leave(store::Session& session, const core::SandboxId& id);
  Result<Row> begin_end(store::Session& session, Row lease);
  Result<Row> record_settled(store::Session& session, const core::LeaseId& id,
                             const Result<>& outcome);
  Result<> end_sandbox(store::Session& session, const core::LeaseRecord& lease);
  // Drops what only this lease or sandbox needed: secrets of its config, and the template that it
  // started from if that is expendable.
  Result<> drop_needs(store::Session& session, const core::LeaseRecord& lease);
  Result<> drop_needs(store::Session& session, const core::Sandbox& sandbox);
  Result<> drop_secrets(store::Session& session, const core::Call& call, const bj::object& config);

  Services& services_;
  const places::Registry& places_;
  Secrets& secrets_;
  const Catalog& catalog_;
  core::NodeId node_;
  std::int64_t hold_ms_;
};

// How long until the next teardown attempt, and when to give up.
std::int64_t teardown_pause_ms(std::int64_t attempts);
inline constexpr std::int64_t teardown_attempts_max = 8;

}  // namespace berth::engine
