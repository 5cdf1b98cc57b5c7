#include "engine/templates/snapshots.hpp"

#include "base/fault_point.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/places/templates.hpp"
#include "store/runs.hpp"
#include "workspaces/confined.hpp"

namespace berth::engine {
namespace {

using places::Lack;

using core::LeaseRecord;
using LeaseRow = LeaseLifecycle::Row;

constexpr std::int64_t usual_fork_seconds = 3600;
constexpr std::int64_t fork_seconds_min = 60;
constexpr std::int64_t fork_seconds_max = 86'400;

Entry bare_entry(const LeaseRecord& lease, std::string_view action) {
  return {lease.company_id, action, "environment_lease", lease.id.str(), {}};
}

Result<LeaseRow> find_held(store::Session& session, const core::Call& call, const core::LeaseId& id,
                           const core::NodeId& node) {
  BERTH_TRY(LeaseRow row, store::find_lease_record(session, core::Reach::of(call.who), id));
  BERTH_DO(expect_held(session, row.value, node));
  if (row.value.sandbox_id) return row;
  return fail(Errc::conflict, "Lease " + id.str() + " holds no sandbox: its driver is " +
                                  std::string{name_of(row.value.driver)});
}

Result<> expect_no_run(store::Session& session, const LeaseRecord& lease) {
  if (!lease.heartbeat_run_id) return {};
  const auto run = store::find_run(session, core::Reach::everything(), *lease.heartbeat_run_id);
  if (!run || core::is_final(run->value.status)) return {};
  return fail(Errc::conflict, "Run " + run->value.id.str() + " works with lease " + lease.id.str(),
              "cancel the run, or roll back a fork: berth sandbox fork " + lease.id.str());
}

// Marks a lease's unfinished rollback, by this server or by one that died.
constexpr const char* pending_rollback = "rollingBack";

bool awaits_rollback(const LeaseRecord& lease, const std::string& mark) {
  return peek<std::string>(lease.metadata, pending_rollback) == mark;
}

template <class Name>
class UnderWay {
 public:
  UnderWay(std::set<Name>& all, Name name) : all_(all), name_(std::move(name)) {
    all_.insert(name_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() { all_.erase(name_); }

 private:
  std::set<Name>& all_;
  Name name_;
};

// Replaces the provider's facts about the former place with those of the fresh one, but keeps its
// plugin.
void tell_of_fresh_place(places::PlaceRef& facts, std::optional<std::string> id,
                         bj::object metadata) {
  if (facts.metadata.contains("pluginId")) metadata["pluginId"] = facts.metadata.at("pluginId");
  facts.provider_lease_id = std::move(id);
  facts.metadata = std::move(metadata);
}

std::string name_for_fork(const core::LeaseId& of, const core::LeaseId& copy) {
  return "fork of " + of.str() + " for " + copy.str();
}

std::unexpected<Error> is_being_forked(const core::LeaseId& id) {
  return fail(Errc::conflict, "Lease " + id.str() + " is being forked for the same request",
              "ask again when that is over");
}

// Whether the fork that a request named was never created. This server is not creating it.
Result<bool> is_fork_given_up(store::Session& session, const core::Call& call,
                              const core::LeaseId& id, const std::string& named) {
  BERTH_TRY(const core::LeaseId copy, core::LeaseId::parse(named));
  const auto lease = store::find_lease_record(session, core::Reach::of(call.who), copy);
  if (lease) return false;
  if (lease.error().code != Errc::lease_not_found) return std::unexpected(lease.error());
  BERTH_TRY(const LeaseRow source,
            store::find_lease_record(session, core::Reach::of(call.who), id));
  const auto made =
      store::find_named_template(session, source.value.company_id, name_for_fork(id, copy));
  // A capture begun by a server that was killed is given up soon.
  if (made && made->value.status == core::TemplateState::capturing) return is_being_forked(id);
  return true;
}

void set_frozen(LeaseRecord& lease, bool frozen) {
  bj::object metadata = lease.metadata.value_or(bj::object{});
  metadata["frozen"] = frozen;
  lease.metadata = std::move(metadata);
}

}  // namespace

Task<Snapshots::Held> Snapshots::place_of(LeaseRow row) {
  BERTH_CO_TRY(places::Place* const place, leases_.place_of(row.value));
  BERTH_CO_TRY(places::PlaceRef facts, co_await leases_.facts(row.value));
  co_return Held{std::move(row.value), *place, std::move(facts)};
}

Task<places::Changes> Snapshots::changes(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(LeaseRow row, co_await services_.store.read([&](store::Session& s) {
    return find_held(s, call, id, leases_.node());
  }));
  BERTH_CO_TRY(const Held held, co_await place_of(std::move(row)));
  BERTH_CO_TRY(places::Snapshots* const snapshots, need<Lack::changes>(held.place, held.facts));
  BERTH_CO_TRY(places::Changes found, co_await snapshots->changes(held.facts));
  for (places::Change& one : found.changes) one.path = workspaces::escaped(one.path);
  co_return found;
}

// A retried request changes nothing and returns the current row.
Task<LeaseRow> Snapshots::mark(core::Call call, core::LeaseId id, std::string_view action,
                               bool frozen) {
  const auto work = [&](store::Session& s) -> Result<std::string> {
    BERTH_DO(expect_alive(s, leases_.node()));
    BERTH_TRY(LeaseRow row, find_held(s, call, id, leases_.node()));
    set_frozen(row.value, frozen);
    BERTH_DO(record(s, services_, call, bare_entry(row.value, action)));
    BERTH_DO(store::update_lease(s, std::move(row), services_.clock.now()));
    return id.str();
  };
  BERTH_CO_DO(co_await idempotent_write(services_, call, work));
  co_return co_await services_.store.read(
      [&](store::Session& s) { return find_held(s, call, id, leases_.node()); });
}

Task<LeaseView> Snapshots::freeze(core::Call call, core::LeaseId id) {
  // Recorded first, so that a concurrent capture leaves it frozen.
  BERTH_CO_TRY(LeaseRow row, co_await mark(call, id, "environment.lease_frozen", true));
  BERTH_CO_TRY(const Held held, co_await place_of(row));
  const auto freezer = need<Lack::freeze>(held.place, held.facts);
  const Result<> frozen =
      freezer ? co_await (*freezer)->freeze(held.facts) : std::unexpected(freezer.error());
  if (frozen) co_return view_of(std::move(row.value));
  if (frozen.error().code != Errc::cancelled) {
    call.once.reset();
    BERTH_CO_DO(co_await mark(call, id, "environment.lease_not_frozen", false));
  }
  co_return std::unexpected(frozen.error());
}

Task<LeaseView> Snapshots::thaw(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(LeaseRow row, co_await services_.store.read([&](store::Session& s) {
    return find_held(s, call, id, leases_.node());
  }));
  BERTH_CO_TRY(const Held held, co_await place_of(std::move(row)));
  const auto freezer = need<Lack::thaw>(held.place, held.facts);
  Result<> thawed;
  if (freezer) {
    thawed = co_await (*freezer)->thaw(held.facts);
  } else if (!places::is_of_plugin(held.facts)) {  // no plugin freezes, so nothing is to be thawed
    thawed = std::unexpected(freezer.error());
  }
  // A place that no longer exists is not frozen.
  const bool is_gone = !thawed && thawed.error().code == Errc::process_lost;
  if (!thawed && !is_gone) co_return std::unexpected(thawed.error());
  BERTH_CO_TRY(row, co_await mark(call, id, "environment.lease_thawed", false));
  if (is_gone) co_return std::unexpected(thawed.error());
  co_return view_of(std::move(row.value));
}

Result<> Snapshots::intend_roll_back(store::Session& session, const core::Call& call,
                                     const core::LeaseId& id, const RollBackLease& wanted,
                                     const std::string& mark) {
  BERTH_DO(expect_alive(session, leases_.node()));
  const Time now = services_.clock.now();
  BERTH_TRY(LeaseRow row, find_held(session, call, id, leases_.node()));
  LeaseRecord& lease = row.value;
  BERTH_DO(expect_no_run(session, lease));
  if (wanted.template_) {
    BERTH_TRY(const auto from,
              store::find_named_template(session, lease.company_id, *wanted.template_));
    const bool fits =
        from.value.status == core::TemplateState::ready && from.value.provider == lease.provider;
    if (!fits) {
      return fail(Errc::conflict, "Template \"" + from.value.name +
                                      "\" is not one to roll back to: it is " +
                                      std::string{name_of(from.value.status)} + ", of provider " +
                                      from.value.provider);
    }
    lease.teardown.config = core::bound_config(lease.teardown.config, from.value);
    lease.teardown.template_id = from.value.id;
    BERTH_TRY(auto sandbox,
              store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id));
    sandbox.value.config = lease.teardown.config;
    BERTH_DO(store::update_sandbox(session, std::move(sandbox), now));
  }
  set_frozen(lease, false);
  (*lease.metadata)[pending_rollback] = mark;
  BERTH_DO(record(session, services_, call, bare_entry(lease, "environment.lease_rolled_back")));
  BERTH_DO(store::update_lease(session, std::move(row), now));
  return {};
}

Task<LeaseView> Snapshots::roll_back(core::Call call, core::LeaseId id, RollBackLease wanted) {
  if (rolling_back_.contains(id)) {
    co_return fail(Errc::conflict, "Lease " + id.str() + " is being rolled back",
                   "ask again when that is over");
  }
  // A retried request finds the first one's mark, and completes what that one did not.
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    std::string mark = make_uuid(services_.random, services_.clock.now());
    BERTH_DO(intend_roll_back(s, call, id, wanted, mark));
    return mark;
  };
  const UnderWay under_way{rolling_back_, id};
  BERTH_CO_TRY(const std::string mark, co_await idempotent_write(services_, call, begin));
  BERTH_CO_TRY(LeaseRow row, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::of(call.who), id);
  }));
  if (!awaits_rollback(row.value, mark)) co_return view_of(std::move(row.value));
  BERTH_CO_DO(expect_held(row.value, leases_.node()));
  co_return co_await carry_out_roll_back(std::move(row));
}

Task<LeaseView> Snapshots::carry_out_roll_back(LeaseRow row) {
  const core::LeaseId id = row.value.id;
  fault_point("rollback.intended");
  BERTH_CO_TRY(Held held, co_await place_of(row));
  const Result<> destroyed = co_await held.place.destroy(held.facts);
  if (!destroyed) co_return co_await give_up_roll_back(std::move(held), destroyed.error());
  fault_point("rollback.destroyed");
  const places::AcquireRequest request{.lease = held.facts.clone()};
  const Result<places::Acquired> acquired = co_await held.place.acquire(request);
  if (!acquired) co_return co_await give_up_roll_back(std::move(held), acquired.error());
  fault_point("rollback.acted");
  tell_of_fresh_place(held.facts, acquired->provider_lease_id, acquired->metadata);
  Result<LeaseRow> recorded =
      co_await services_.store.write([&](store::Session& s) -> Result<LeaseRow> {
        BERTH_DO(expect_alive(s, leases_.node()));
        return leases_.record_again(s, id, *acquired);
      });
  if (!recorded) co_return co_await give_up_roll_back(std::move(held), recorded.error());
  LeaseRecord& lease = recorded->value;
  tell_of_fresh_place(held.facts, lease.provider_lease_id, lease.metadata.value_or(bj::object{}));
  BERTH_CO_DO(co_await leases_.keep(lease, held.facts));
  services_.feed.changed(lease.company_id);
  co_return view_of(std::move(lease));
}

Task<LeaseView> Snapshots::give_up_roll_back(Held former, Error why) {
  if (why.code == Errc::cancelled) co_return std::unexpected(std::move(why));
  const core::LeaseId id = former.lease.id;
  const auto row = co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), id);
  });
  if (!row) co_return std::unexpected(std::move(why));
  const Result<> held = expect_held(row->value, leases_.node());
  // The lease still waits for its rollback, which the next request completes.
  if (held) co_return std::unexpected(std::move(why));
  const Result<> gone = co_await former.place.destroy(former.facts);
  if (!gone) {
    log::warn("rollback.left_behind", {{"lease", id},
                                       {"place", former.facts.provider_lease_id.value_or("")},
                                       {"error", gone.error().message}});
  }
  co_return std::unexpected(held.error());
}

Result<Snapshots::Fork> Snapshots::intend_fork(store::Session& session, const core::Call& call,
                                               const core::LeaseId& id) {
  BERTH_TRY(LeaseRow row, find_held(session, call, id, leases_.node()));
  if (!row.value.environment_id) {
    return fail(Errc::environment_not_found, "The environment of lease " + id.str() + " is gone");
  }
  BERTH_TRY(auto environment,
            store::find_environment(session, core::Reach::of(call.who), *row.value.environment_id));
  const Time now = services_.clock.now();
  core::LeaseId copy = core::LeaseId::make(services_.random, now);
  BERTH_TRY(auto made, templates_.intend(session, row.value,
                                         {.name = name_for_fork(id, copy),
                                          .stays = TemplateCapture::Request::Stays::while_used}));
  BERTH_DO(record(session, services_, call, bare_entry(row.value, "environment.lease_forked")));
  // Uses the sandbox's own config, not the environment's current one.
  environment.value.config = row.value.teardown.config;
  return Fork{std::move(copy), std::move(made), std::move(row.value), std::move(environment.value)};
}

Task<LeaseView> Snapshots::fork(core::Call call, core::LeaseId id, ForkLease wanted) {
  const std::int64_t ttl = wanted.ttl_seconds.value_or(usual_fork_seconds);
  if (ttl < fork_seconds_min || ttl > fork_seconds_max) {
    co_return fail(Errc::validation_failed, "/ttlSeconds: must be from 60 to 86400");
  }
  if (!call.once) co_return co_await fork_once(std::move(call), std::move(id), ttl);
  std::string key = call.who.actor_id() + ":" + call.once->key;
  if (forking_.contains(key)) co_return is_being_forked(id);
  const UnderWay under_way{forking_, std::move(key)};
  co_return co_await fork_once(std::move(call), std::move(id), ttl);
}

Task<LeaseView> Snapshots::fork_once(core::Call call, core::LeaseId id, std::int64_t ttl_seconds) {
  // A retried request gets the same fork; only the request that began it creates it.
  std::optional<Fork> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(begun, intend_fork(s, call, id));
    return begun->id.str();
  };
  const auto is_given_up = [&](store::Session& s, const std::string& before) {
    return is_fork_given_up(s, call, id, before);
  };
  BERTH_CO_TRY(const std::string named,
               co_await idempotent_write(services_, call, begin, is_given_up));
  if (!begun || begun->id.str() != named) {
    BERTH_CO_TRY(const core::LeaseId known, core::LeaseId::parse(named));
    BERTH_CO_TRY(LeaseRow row, co_await services_.store.read([&](store::Session& s) {
      return store::find_lease_record(s, core::Reach::of(call.who), known);
    }));
    co_return view_of(std::move(row.value));
  }
  co_return co_await make_fork(*std::move(begun), ttl_seconds);
}

Task<LeaseView> Snapshots::make_fork(Fork begun, std::int64_t ttl_seconds) {
  BERTH_CO_TRY(const TemplateCapture::Row made,
               co_await templates_.capture(std::move(begun.made), std::move(begun.lease), {}));
  const Time until = services_.clock.now() + ttl_seconds * 1000;
  BERTH_CO_TRY(LeaseRow row, co_await services_.store.write([&](store::Session& s) {
    return leases_.intend(s, begun.id, begun.environment, nullptr,
                          {.expires_at = until,
                           .from = made.value.id,
                           .after = LeaseLifecycle::Terms::After::restart_keeps_it});
  }));
  Result<LeaseLifecycle::Held> held = co_await leases_.acquire(row, {}, {});
  if (!held) {
    if (held.error().code != Errc::cancelled) co_await leases_.settle(std::move(row));
    co_return std::unexpected(held.error());
  }
  BERTH_CO_DO(co_await leases_.keep(held->lease.value, held->facts));
  services_.feed.changed(held->lease.value.company_id);
  co_return view_of(std::move(held->lease.value));
}

}  // namespace berth::engine
