#include "engine/snapshots.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/held_lease.hpp"
#include "engine/journal.hpp"
#include "engine/node_life.hpp"
#include "engine/once.hpp"
#include "store/environments.hpp"
#include "store/leases.hpp"
#include "store/runs.hpp"
#include "store/sandboxes.hpp"
#include "store/templates.hpp"

namespace berth::engine {
namespace {

using core::LeaseRecord;
using Row = LeaseWork::Row;

constexpr std::int64_t usual_ttl_seconds = 3600;
constexpr std::int64_t ttl_seconds_min = 60;
constexpr std::int64_t ttl_seconds_max = 86'400;

Entry entry_of(const LeaseRecord& lease, std::string_view action) {
  return {lease.company_id, action, "environment_lease", lease.id.str(), {}};
}

Result<Row> find_held(store::Session& session, const core::Call& call, const core::LeaseId& id,
                      const core::NodeId& node) {
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::of(call.who), id));
  BERTH_DO(expect_held(row.value, node));
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

// Which rollback of a lease has begun and is not done: it may be this server's, or one that a
// server did not survive.
constexpr const char* pending_rollback = "rollingBack";

bool awaits_rollback(const LeaseRecord& lease, const std::string& mark) {
  const bj::value* pending =
      lease.metadata ? lease.metadata->if_contains(pending_rollback) : nullptr;
  return pending != nullptr && *pending == bj::value(mark);
}

class UnderWay {
 public:
  UnderWay(std::set<core::LeaseId>& leases, core::LeaseId id)
      : leases_(leases), id_(std::move(id)) {
    leases_.insert(id_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() { leases_.erase(id_); }

 private:
  std::set<core::LeaseId>& leases_;
  core::LeaseId id_;
};

void set_frozen(LeaseRecord& lease, bool frozen) {
  bj::object metadata = lease.metadata.value_or(bj::object{});
  metadata["frozen"] = frozen;
  lease.metadata = std::move(metadata);
}

}  // namespace

Task<Snapshots::Place> Snapshots::place_of(Row row) {
  BERTH_CO_TRY(drivers::Driver* const driver, leases_.driver(row.value));
  BERTH_CO_TRY(drivers::LeaseFacts facts, co_await leases_.facts(row.value));
  co_return Place{std::move(row.value), driver, std::move(facts)};
}

Task<execution::Changes> Snapshots::changes(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(Row row, co_await means_.store.read([&](store::Session& s) {
    return find_held(s, call, id, leases_.node());
  }));
  BERTH_CO_TRY(const Place place, co_await place_of(std::move(row)));
  co_return co_await place.driver->changes(place.facts);
}

// A repeated request changes nothing; the row is as it is now.
Task<Row> Snapshots::mark(core::Call call, core::LeaseId id, std::string_view action, bool frozen) {
  const auto work = [&](store::Session& s) -> Result<std::string> {
    BERTH_DO(expect_alive(s, leases_.node()));
    BERTH_TRY(Row row, find_held(s, call, id, leases_.node()));
    set_frozen(row.value, frozen);
    BERTH_DO(record(s, means_, call, entry_of(row.value, action)));
    BERTH_DO(store::update_lease(s, std::move(row), means_.clock.now()));
    return id.str();
  };
  BERTH_CO_DO(co_await write_once(means_, call, work));
  co_return co_await means_.store.read(
      [&](store::Session& s) { return find_held(s, call, id, leases_.node()); });
}

Task<LeaseView> Snapshots::freeze(core::Call call, core::LeaseId id) {
  // Recorded first: whoever captures it meanwhile leaves it as it is.
  BERTH_CO_TRY(Row row, co_await mark(call, id, "environment.lease_frozen", true));
  BERTH_CO_TRY(const Place place, co_await place_of(row));
  const Result<> frozen = co_await place.driver->freeze(place.facts);
  if (frozen) co_return view_of(std::move(row.value));
  if (frozen.error().code != Errc::cancelled) {
    call.once.reset();
    BERTH_CO_DO(co_await mark(call, id, "environment.lease_not_frozen", false));
  }
  co_return std::unexpected(frozen.error());
}

Task<LeaseView> Snapshots::thaw(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(Row row, co_await means_.store.read([&](store::Session& s) {
    return find_held(s, call, id, leases_.node());
  }));
  BERTH_CO_TRY(const Place place, co_await place_of(std::move(row)));
  const Result<> thawed = co_await place.driver->thaw(place.facts);
  // What is gone does not stand still any more.
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
  const Time now = means_.clock.now();
  BERTH_TRY(Row row, find_held(session, call, id, leases_.node()));
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
  BERTH_DO(record(session, means_, call, entry_of(lease, "environment.lease_rolled_back")));
  BERTH_DO(store::update_lease(session, std::move(row), now));
  return {};
}

Task<LeaseView> Snapshots::roll_back(core::Call call, core::LeaseId id, RollBackLease wanted) {
  if (rolling_back_.contains(id)) {
    co_return fail(Errc::conflict, "Lease " + id.str() + " is being rolled back",
                   "ask again when that is over");
  }
  // A repeated request finds the mark of the first, and does what that one did not come to.
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    std::string mark = make_uuid(means_.random, means_.clock.now());
    BERTH_DO(intend_roll_back(s, call, id, wanted, mark));
    return mark;
  };
  const UnderWay under_way{rolling_back_, id};
  BERTH_CO_TRY(const std::string mark, co_await write_once(means_, call, begin));
  BERTH_CO_TRY(Row row, co_await means_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::of(call.who), id);
  }));
  if (!awaits_rollback(row.value, mark)) co_return view_of(std::move(row.value));
  BERTH_CO_DO(expect_held(row.value, leases_.node()));
  co_return co_await carry_out_roll_back(std::move(row));
}

Task<LeaseView> Snapshots::carry_out_roll_back(Row row) {
  const core::LeaseId id = row.value.id;
  fault_point("rollback.intended");
  BERTH_CO_TRY(Place place, co_await place_of(row));
  BERTH_CO_DO(co_await place.driver->destroy(place.facts));
  fault_point("rollback.destroyed");
  const drivers::AcquireRequest request{.lease = place.facts.clone()};
  BERTH_CO_TRY(const drivers::Acquired acquired, co_await place.driver->acquire(request));
  fault_point("rollback.acted");
  BERTH_CO_TRY(row, co_await means_.store.write([&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    return leases_.record_again(s, id, acquired);
  }));
  place.facts.provider_lease_id = row.value.provider_lease_id;
  place.facts.metadata = row.value.metadata.value_or(bj::object{});
  BERTH_CO_DO(co_await leases_.keep(row.value, place.facts));
  means_.feed.changed(row.value.company_id);
  co_return view_of(std::move(row.value));
}

Result<Snapshots::Fork> Snapshots::intend_fork(store::Session& session, const core::Call& call,
                                               const core::LeaseId& id) {
  BERTH_TRY(Row row, find_held(session, call, id, leases_.node()));
  if (!row.value.environment_id) {
    return fail(Errc::environment_not_found, "The environment of lease " + id.str() + " is gone");
  }
  BERTH_TRY(auto environment,
            store::find_environment(session, core::Reach::of(call.who), *row.value.environment_id));
  const Time now = means_.clock.now();
  core::LeaseId copy = core::LeaseId::make(means_.random, now);
  BERTH_TRY(auto made, templates_.intend(session, row.value,
                                         {.name = "fork of " + id.str() + " for " + copy.str(),
                                          .stays = TemplateWork::Wish::Stays::while_used}));
  BERTH_DO(record(session, means_, call, entry_of(row.value, "environment.lease_forked")));
  // As the sandbox is, not as the environment would make one today.
  environment.value.config = row.value.teardown.config;
  return Fork{std::move(copy), std::move(made), std::move(row.value), std::move(environment.value)};
}

Task<LeaseView> Snapshots::fork(core::Call call, core::LeaseId id, ForkLease wanted) {
  const std::int64_t ttl = wanted.ttl_seconds.value_or(usual_ttl_seconds);
  if (ttl < ttl_seconds_min || ttl > ttl_seconds_max) {
    co_return fail(Errc::validation_failed, "/ttlSeconds: must be from 60 to 86400");
  }
  // A repeated request has the same fork; only whoever began it makes it.
  std::optional<Fork> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(begun, intend_fork(s, call, id));
    return begun->id.str();
  };
  BERTH_CO_TRY(const std::string named, co_await write_once(means_, call, begin));
  if (!begun || begun->id.str() != named) {
    BERTH_CO_TRY(const core::LeaseId known, core::LeaseId::parse(named));
    BERTH_CO_TRY(Row row, co_await means_.store.read([&](store::Session& s) {
      return store::find_lease_record(s, core::Reach::of(call.who), known);
    }));
    co_return view_of(std::move(row.value));
  }
  BERTH_CO_TRY(const TemplateWork::Row made,
               co_await templates_.capture(std::move(begun->made), std::move(begun->lease), {}));
  const Time until = means_.clock.now() + ttl * 1000;
  BERTH_CO_TRY(Row row, co_await means_.store.write([&](store::Session& s) {
    return leases_.intend(s, begun->id, begun->environment, nullptr,
                          {.expires_at = until,
                           .from = made.value.id,
                           .after = LeaseWork::Terms::After::restart_keeps_it});
  }));
  Result<LeaseWork::Held> held = co_await leases_.acquire(row, {}, {});
  if (!held) {
    if (held.error().code != Errc::cancelled) co_await leases_.settle(std::move(row));
    co_return std::unexpected(held.error());
  }
  BERTH_CO_DO(co_await leases_.keep(held->lease.value, held->facts));
  means_.feed.changed(held->lease.value.company_id);
  co_return view_of(std::move(held->lease.value));
}

}  // namespace berth::engine
