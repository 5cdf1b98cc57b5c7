#include "engine/upkeep/sweeper.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/retry.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/places/setup_sessions.hpp"
#include "store/places/templates.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds sweep_every{1000};
constexpr std::int64_t rows_at_a_time = 20;
constexpr std::size_t work_max = 16;
constexpr std::int64_t sweep_claim_ms = 10LL * 60 * 1000;
constexpr std::int64_t sweep_again_ms = 30'000;
constexpr int held_every = 600;  // sweeps

// Kept for inspection, or for a user who works in it: a server restart does not end it.
bool is_held_for_somebody(const core::LeaseRecord& lease) {
  return lease.status == core::LeaseState::retained ||
         (lease.status == core::LeaseState::active && lease.teardown.kept == true);
}

}  // namespace

Task<> Sweeper::sweep() {
  for (int count = 0;; ++count) {
    Result<> swept = co_await dispatcher_.adopt_orphans();
    if (swept) swept = co_await sweep_once();
    if (swept && count % held_every == 0) swept = co_await sweep_held();
    if (swept && count % held_every == 0) swept = co_await sweep_held_sandboxes();
    if (swept && count % held_every == 0) swept = co_await sweep_held_templates();
    if (!swept && swept.error().code != Errc::cancelled) {
      log::warn("sweeper.failed", {{"error", swept.error().message}});
    }
    const Result<> rested = co_await pause_for(executor_, sweep_every);
    if (!rested) co_return Result<>{};
  }
}

Task<> Sweeper::sweep_once() {
  if (work_.size() >= work_max) co_return Result<>{};
  const Time now = services_.clock.now();
  struct Due {
    std::vector<LeaseLifecycle::Row> leases;
    std::vector<core::Stored<core::Sandbox>> sandboxes;
  };
  BERTH_CO_TRY(const Due due, co_await services_.store.read([&](store::Session& s) -> Result<Due> {
    Due found;
    BERTH_TRY(found.leases, store::due_leases(s, leases_.node(), now, rows_at_a_time));
    BERTH_TRY(found.sandboxes, store::due_sandboxes(s, leases_.node(), now, rows_at_a_time));
    return found;
  }));
  for (const LeaseLifecycle::Row& lease : due.leases) {
    const auto claim = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
      BERTH_DO(expect_alive(s, leases_.node()));
      return store::claim_lease(s, lease, leases_.node(), now + sweep_claim_ms, now);
    };
    Result<LeaseLifecycle::Row> claimed = co_await services_.store.write(claim);
    if (!claimed && claimed.error().code == Errc::conflict) continue;  // another was faster
    if (!claimed) co_return std::unexpected(std::move(claimed).error());
    fault_point("sweep.claimed");
    work_.start("settle lease " + lease.value.id.str(), handle(*std::move(claimed)));
  }
  for (const auto& sandbox : due.sandboxes) {
    work_.start("settle sandbox " + sandbox.value.id.str(), handle_sandbox(sandbox));
  }
  co_return co_await sweep_setups();
}

Task<> Sweeper::sweep_setups() {
  const Time now = services_.clock.now();
  struct Due {
    std::vector<TemplateCapture::Row> templates;
    std::vector<SetupSessions::Row> sessions;
  };
  BERTH_CO_TRY(const Due due, co_await services_.store.read([&](store::Session& s) -> Result<Due> {
    Due found;
    BERTH_TRY(found.templates, store::due_templates(s, leases_.node(), now, rows_at_a_time));
    BERTH_TRY(found.sessions, store::due_setup_sessions(s, leases_.node(), now, rows_at_a_time));
    return found;
  }));
  for (const TemplateCapture::Row& row : due.templates) {
    if (!under_way_.insert(row.value.id.str()).second) continue;
    work_.start("look at template " + row.value.id.str(), handle_template(row));
  }
  for (const SetupSessions::Row& row : due.sessions) {
    if (!under_way_.insert(row.value.id.str()).second) continue;
    work_.start("look at setup session " + row.value.id.str(), handle_session(row));
  }
  co_return Result<>{};
}

Task<> Sweeper::handle_template(TemplateCapture::Row row) {
  const std::string id = row.value.id.str();
  Result<> done = co_await templates_.look_at(std::move(row));
  under_way_.erase(id);
  if (!done && done.error().code == Errc::conflict) co_return Result<>{};  // another was faster
  co_return done;
}

Task<> Sweeper::handle_session(SetupSessions::Row row) {
  const std::string id = row.value.id.str();
  Result<> done = co_await sessions_.look_at(std::move(row));
  under_way_.erase(id);
  if (!done && done.error().code == Errc::conflict) co_return Result<>{};
  co_return done;
}

Task<> Sweeper::handle(LeaseLifecycle::Row lease) {
  const bool is_kept = is_held_for_somebody(lease.value) &&
                       lease.value.expires_at.value_or(Time{}) > services_.clock.now();
  if (is_kept) co_return co_await keep(std::move(lease));
  BERTH_CO_TRY(const bool done, co_await spare_or_expire(lease));
  if (done) co_return Result<>{};
  BERTH_CO_TRY(const LeaseLifecycle::Row settled, co_await leases_.settle(std::move(lease)));
  if (core::is_final(settled.value.status)) {
    log::info("lease.settled",
              {{"lease", settled.value.id}, {"status", name_of(settled.value.status)}});
  }
  co_return Result<>{};
}

Task<> Sweeper::keep(LeaseLifecycle::Row lease) {
  const bool is_ours = lease.value.node_id == leases_.node();
  if (is_ours) {
    BERTH_CO_TRY(const places::PlaceRef known, co_await leases_.facts(lease.value));
    BERTH_CO_DO(co_await leases_.keep(lease.value, known));
    fault_point("sweep.kept");
  }
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(expect_alive(s, leases_.node()));
    const Time now = services_.clock.now();
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::everything(), lease.value.id));
    if (!is_held_for_somebody(row.value)) return {};
    row.value.claimed_by.reset();
    row.value.claimed_until.reset();
    row.value.next_attempt_at = is_ours ? row.value.expires_at : now + sweep_again_ms;
    BERTH_DO(store::update_lease(s, std::move(row), now));
    return {};
  });
}

Task<> Sweeper::handle_sandbox(core::Stored<core::Sandbox> sandbox) {
  Result<> done = co_await leases_.settle(std::move(sandbox));
  if (!done && done.error().code == Errc::conflict) co_return Result<>{};
  co_return done;
}

Task<bool> Sweeper::spare_or_expire(LeaseLifecycle::Row lease) {
  const Time now = services_.clock.now();
  std::optional<core::RunId> to_cancel;
  const auto look = [&](store::Session& s) -> Result<bool> {
    if (!lease.value.heartbeat_run_id) return false;
    auto run = store::find_run(s, core::Reach::everything(), *lease.value.heartbeat_run_id);
    if (!run || core::is_final(run->value.status)) return false;
    BERTH_DO(expect_alive(s, leases_.node()));
    if (lease.value.expires_at && *lease.value.expires_at <= now) {
      BERTH_DO(store::request_cancel(s, core::Reach::everything(), run->value.id, now));
      to_cancel = run->value.id;
    }
    LeaseLifecycle::Row row = lease;
    row.value.claimed_by.reset();
    row.value.claimed_until.reset();
    row.value.next_attempt_at = now + sweep_again_ms;
    BERTH_DO(store::update_lease(s, std::move(row), now));
    return true;
  };
  BERTH_CO_TRY(const bool done, co_await services_.store.write(look));
  if (to_cancel) dispatcher_.cancel(*to_cancel);
  co_return done;
}

Task<> Sweeper::sweep_held() {
  BERTH_CO_TRY(const std::vector<places::HeldPlace> held,
               co_await leases_.held(core::DriverKind::local));
  for (const places::HeldPlace& one : held) {
    const std::optional<core::LeaseId> lease = one.key.lease();
    if (!lease) continue;
    const core::LeaseId& id = *lease;
    const auto look = [&](store::Session& s) {
      return store::find_lease_record(s, core::Reach::everything(), id);
    };
    Result<LeaseLifecycle::Row> row = co_await services_.store.read(look);
    const bool is_known = row.has_value();
    if (!is_known && row.error().code != Errc::lease_not_found) continue;
    if (is_known && !core::is_final(row->value.status)) continue;
    log::warn("lease.left_behind", {{"lease", id}});
    const Result<> removed = co_await leases_.remove_held(one);
    if (!removed)
      log::warn("lease.remove_failed", {{"lease", id}, {"error", removed.error().message}});
  }
  co_return Result<>{};
}

Task<> Sweeper::sweep_held_sandboxes() {
  BERTH_CO_TRY(const std::vector<places::HeldPlace> held,
               co_await leases_.held(core::DriverKind::sandbox));
  for (const places::HeldPlace& one : held) {
    const std::optional<core::SandboxId> id = one.key.sandbox();
    if (!id) continue;
    const auto look = [&](store::Session& s) {
      return store::find_sandbox(s, core::Reach::everything(), *id);
    };
    const Result<core::Stored<core::Sandbox>> row = co_await services_.store.read(look);
    if (!row && row.error().code != Errc::sandbox_not_found) continue;
    if (row && !core::is_final(row->value.status)) continue;
    log::warn("sandbox.left_behind", {{"sandbox", *id}});
    const Result<> removed = co_await leases_.remove_held(one);
    if (!removed) {
      log::warn("sandbox.remove_failed", {{"sandbox", *id}, {"error", removed.error().message}});
    }
  }
  co_return Result<>{};
}

// The row is created before its template and deleted after it.
Task<> Sweeper::sweep_held_templates() {
  BERTH_CO_TRY(const std::vector<places::HeldTemplate> held, co_await leases_.held_templates());
  for (const places::HeldTemplate& one : held) {
    const auto look = [&](store::Session& s) {
      return store::find_template(s, core::Reach::everything(), one.id);
    };
    const Result<TemplateCapture::Row> row = co_await services_.store.read(look);
    if (row || row.error().code != Errc::template_not_found) continue;
    log::warn("template.left_behind", {{"template", one.id}});
    const Result<bool> deleted = co_await leases_.delete_held(one);
    if (!deleted) {
      log::warn("template.remove_failed",
                {{"template", one.id}, {"error", deleted.error().message}});
    }
  }
  co_return Result<>{};
}

}  // namespace berth::engine
