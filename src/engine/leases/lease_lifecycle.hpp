#pragma once

#include "core/config/bindings.hpp"
#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/run.hpp"
#include "core/rows/sandbox.hpp"
#include "core/rows/template.hpp"
#include "drivers/registry.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/services.hpp"

#include <functional>

namespace berth::engine {

// Takes places and gives them back: the intention is recorded, the driver acts, the fact is
// recorded. Each part can be repeated, so that whoever finds a lease in any state can bring it to
// its end. Only values on the lease's own row are asked for, never the environment of today.
class LeaseLifecycle {
 public:
  using Row = core::Stored<core::LeaseRecord>;

  // `hold_ms`: how long the place of a server that is gone may live on.
  LeaseLifecycle(Services& services, const drivers::Registry& drivers, Secrets& secrets,
                 const Catalog& catalog, core::NodeId node, std::int64_t hold_ms)
      : services_(services),
        drivers_(drivers),
        secrets_(secrets),
        catalog_(catalog),
        node_(std::move(node)),
        hold_ms_(hold_ms) {}

  const core::NodeId& node() const { return node_; }
  // Whether this server can act on the place: one that stays on its server is reached there alone.
  bool reaches(const core::LeaseRecord& lease) const;
  bool reaches(const core::Sandbox& sandbox) const;

  struct Terms {
    std::optional<Time> expires_at = {};
    // The template to start from, in place of that which the environment asks for.
    std::optional<core::TemplateId> from = {};
    enum class After { restart_ends_it, restart_keeps_it } after = After::restart_ends_it;
    std::optional<core::SetupSessionId> setup = {};  // that it is taken for
    // No run uses what a test leaves, so a provider that would pause it archives it instead.
    enum class Purpose { work, test } purpose = Purpose::work;
    std::optional<core::AgentHomeId> home = {};
    // An idle sandbox that the lease is for, by the rules by which a run of its agent would get it.
    // `conflict` where those give it to nobody.
    struct Kept {
      core::SandboxId sandbox_id;
      std::optional<core::AgentId> agent_id = {};
    };
    std::optional<Kept> kept = {};
  };
  // In the caller's transaction: a lease `acquiring`, and where the driver has sandboxes one that
  // is claimed for it or about to be made. Without a run it is an ad-hoc lease, which serves
  // nobody else unless its sandbox was kept.
  Result<Row> intend(store::Session& session, core::LeaseId id,
                     const core::Environment& environment, const core::Run* run, Terms terms);

  // What the driver is told of a lease. Secrets are read now, each with its access event.
  Task<drivers::PlaceRef> facts(const core::LeaseRecord& lease);
  // The same of a template, whose lease may be long over. Secrets that are gone are left out.
  Task<drivers::PlaceRef> facts(const core::Template& row);
  Result<drivers::Driver*> driver(const core::LeaseRecord& lease) const;
  Result<drivers::Driver*> driver(core::DriverKind kind) const { return drivers_.find(kind); }

  struct Ask {
    drivers::Callback callback = {};
    std::optional<drivers::SetupRequest> setup = {};
    // Whether the provider may have been asked for this lease already: by a server that is gone, or
    // by an attempt that was not answered.
    enum class Before { never, maybe } before = Before::never;
  };
  // The driver's answer, on the row: `active`. What `also` writes is part of the same transaction.
  // lease_acquire_failed where what was asked before cannot be found again.
  struct Held {
    Row lease;
    drivers::PlaceRef facts;
    bool resumed = false;  // the sandbox that was claimed, and not a new one in its stead
  };
  using Also = std::function<Result<>(store::Session&)>;
  Task<Held> acquire(Row lease, Ask ask, Also also);
  // Whether a failed acquire says that nothing was made: it was never sent, or it was refused, and
  // whoever refuses has removed what it had begun.
  static bool made_none(Errc code);

  // In the caller's transaction: a lease that is held has a fresh place in the stead of the one
  // that it had. `conflict` where it is held no more: then the place is the caller's to remove.
  Result<Row> record_again(store::Session& session, const core::LeaseId& id,
                           const drivers::Acquired& acquired);

  // In the transaction that ends the run: the lease begins to end as the run did. Under
  // retain_on_failure a failed run's lease is kept instead.
  Result<Row> begin_release(store::Session& session, Row lease, core::LeaseEvent how);
  // Nobody works in a retained place, so nobody renews it: once, until it is given back. Whoever
  // retains it does so, and then the sweeper of that or the next server once more.
  Task<> keep(const core::LeaseRecord& lease, const drivers::PlaceRef& known);
  // What a place has used, for the rows of whoever ends; nothing where nobody counts.
  Task<std::optional<bj::object>> measure(const core::LeaseRecord& lease,
                                          const drivers::PlaceRef& known);
  // Brings a lease that nobody works with to its end. Where that fails, the row says why and when
  // the next attempt is due, and the answer is that row. What this server does not reach is left to
  // the one that does; where that one is gone, until its keepers have ended by themselves.
  Task<Row> settle(Row lease);
  // The same for a sandbox that serves nobody any more.
  Task<> settle(core::Stored<core::Sandbox> sandbox);
  // On an operator's word, in the caller's transaction: the sandbox that a parked lease waits for
  // is this one, and is destroyed with it. `conflict` where somebody else holds it.
  Result<Row> adopt(store::Session& session, Row lease, std::string provider_lease_id);
  // On an operator's word: the lease and its sandbox are over, whatever the provider still holds.
  Result<Row> force_end(store::Session& session, Row lease, const std::string& reason);

  // A secret that a draft of an environment names.
  Task<ResolvedSecret> read_for_draft(const core::Call& call, const core::CompanyId& company,
                                      const core::BoundRef& bound);

  // What this machine holds by itself, and the removal of what no lease asks for any more.
  Task<std::vector<core::LeaseId>> held();
  Task<> remove_held(core::LeaseId id);
  Task<std::vector<drivers::HeldSandbox>> held_sandboxes();
  Task<> remove_held(drivers::HeldSandbox sandbox);

 private:
  Task<drivers::Acquired> acquire_again(drivers::Driver& place, drivers::AcquireRequest request);
  // Asks a second and a third time, under the same key, for what was not answered: whoever names
  // sandboxes by their run gives the same one each time. The verdict, and what to destroy, is on
  // the row.
  Task<Row> trace(drivers::Driver& place, drivers::AcquireRequest request);
  Task<> end_unanswered(core::LeaseId id);
  Task<> destroy_strays(drivers::Driver& place, Row row, const drivers::PlaceRef& known);
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
                              const drivers::Acquired& acquired);
  Task<> act(core::LeaseRecord lease);
  // When nothing is left any more of what that server held; nothing while it is alive.
  Result<std::optional<Time>> gone_with(store::Session& session,
                                        const std::optional<core::NodeId>& server) const;
  Result<Row> leave(store::Session& session, const core::LeaseId& id);
  Result<> leave(store::Session& session, const core::SandboxId& id);
  Result<Row> begin_end(store::Session& session, Row lease);
  Result<Row> record_settled(store::Session& session, const core::LeaseId& id,
                             const Result<>& outcome);
  Result<> end_sandbox(store::Session& session, const core::LeaseRecord& lease);
  // What was there for the lease alone is no longer needed: secrets of its config, and the template
  // that it started from where that is expendable.
  Result<> drop_needs(store::Session& session, const core::LeaseRecord& lease);

  Services& services_;
  const drivers::Registry& drivers_;
  Secrets& secrets_;
  const Catalog& catalog_;
  core::NodeId node_;
  std::int64_t hold_ms_;
};

// How long until the next attempt of a teardown, and when to stop trying.
std::int64_t teardown_pause_ms(std::int64_t attempts);
inline constexpr std::int64_t teardown_attempts_max = 8;

}  // namespace berth::engine
