// How leases end: given back, retained or destroyed, and what is retried.
#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "core/config/provider_config.hpp"
#include "engine/journal.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/leases/lease_notes.hpp"
#include "engine/leases/lease_trace.hpp"
#include "engine/leases/reuse.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/nodes.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/places/templates.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

using core::LeaseEvent;
using core::LeasePolicy;
using core::LeaseRecord;
using core::LeaseState;
using core::SandboxEvent;

constexpr std::int64_t idle_sandbox_ms = 30LL * 60 * 1000;
constexpr std::int64_t retained_ms = 24LL * 60 * 60 * 1000;
// Longer than the sweeper may take to give it back.
constexpr std::int64_t retained_slack_ms = 60LL * 60 * 1000;
constexpr std::int64_t keep_again_ms = 1000;             // sooner than any command lapses
constexpr std::int64_t end_claim_ms = 10LL * 60 * 1000;  // longer than any single attempt takes

// A lease whose provider returned another lease's sandbox has its own sandbox instead.
bool may_serve_others(const LeaseRecord& lease) {
  return is_reuse(lease.lease_policy) && asks_for_reuse(lease.teardown.config);
}

// Whether the sandbox serves later leases: only if its run left it in order.
bool gives_back(const LeaseRecord& lease) {
  return lease.sandbox_id && may_serve_others(lease) &&
         lease.release_event == LeaseEvent::release_succeeded;
}

// Ends the last phase of the run's timeline.
Result<> end_release_phase(store::Session& session, const LeaseRecord& lease, Time now) {
  if (!lease.heartbeat_run_id) return {};
  auto run = store::find_run(session, core::Reach::everything(), *lease.heartbeat_run_id);
  if (!run || !core::is_final(run->value.status)) return {};
  core::end_phases(run->value.phases, now);
  BERTH_DO(store::update_run(session, *std::move(run), now));
  return {};
}

}  // namespace

std::int64_t teardown_pause_ms(std::int64_t attempts) {
  constexpr std::int64_t first = 1'000;
  constexpr std::int64_t longest = 5LL * 60 * 1000;
  return std::min(longest, first << std::clamp<std::int64_t>(attempts - 1, 0, 20));
}

Result<LeaseLifecycle::Row> LeaseLifecycle::begin_release(store::Session& session, Row lease,
                                                          LeaseEvent how) {
  const Time now = services_.clock.now();
  lease.value.release_event = how;
  // The caller also ends it; if that fails silently, the sweeper takes over.
  lease.value.next_attempt_at = now + end_claim_ms;
  // A lease that was never acquired has no intermediate state: anything the driver holds for it is
  // destroyed, then the row ends.
  if (lease.value.status == LeaseState::acquiring) {
    return store::update_lease(session, std::move(lease), now);
  }
  const bool keeps = lease.value.lease_policy == LeasePolicy::retain_on_failure &&
                     lease.value.status == LeaseState::active && how == LeaseEvent::release_failed;
  if (keeps) {
    lease.value.expires_at = now + retained_ms;
    // Soon, so that its place is renewed even if this server dies first.
    lease.value.next_attempt_at = now + keep_again_ms;
    lease.value.failure_reason = "adapter_or_run_failure";
    return store::move_lease(session, std::move(lease), LeaseEvent::retain, now);
  }
  if (how == LeaseEvent::release_failed && !lease.value.failure_reason) {
    lease.value.failure_reason = "adapter_or_run_failure";
  }
  lease.value.cleanup_status = core::CleanupStatus::pending;
  return store::move_lease(session, std::move(lease), LeaseEvent::release_begun, now);
}

Task<> LeaseLifecycle::keep(const LeaseRecord& lease, const places::PlaceRef& known) {
  BERTH_CO_TRY(places::Place* const place, place_of(lease));
  places::Commands* const commands = place->abilities().commands;
  // A place without commands holds nothing that would end.
  if (commands == nullptr) co_return Result<>{};
  const Time until = lease.expires_at.value_or(services_.clock.now() + retained_ms);
  const std::int64_t left_ms = std::max<std::int64_t>(until - services_.clock.now(), 0);
  const Result<> kept = co_await commands->renew(known, left_ms + retained_slack_ms);
  if (!kept && kept.error().code != Errc::cancelled) {
    log::warn("lease.not_kept", {{"lease", lease.id}, {"error", kept.error().message}});
  }
  co_return Result<>{};
}

Task<std::optional<bj::object>> LeaseLifecycle::measure(const LeaseRecord& lease,
                                                        const places::PlaceRef& known) {
  BERTH_CO_TRY(places::Place* const place, place_of(lease));
  places::UsageMeter* const meter = place->abilities().usage;
  if (meter == nullptr) co_return std::nullopt;
  const Result<places::Usage> used = co_await meter->usage(known);
  if (used) co_return encode(*used).as_object();
  if (used.error().code == Errc::cancelled) co_return std::unexpected(used.error());
  co_return std::nullopt;
}

Task<> LeaseLifecycle::act(LeaseRecord lease) {
  BERTH_CO_TRY(places::Place* const place, place_of(lease));
  const bool was_acquired = lease.metadata.has_value();
  if (!was_acquired && !place->abilities().found_by_key) {
    co_return co_await end_unanswered(lease.id);
  }
  BERTH_CO_TRY(const places::PlaceRef known, co_await facts(lease));
  const bool orderly =
      lease.status == LeaseState::releasing && (!may_serve_others(lease) || gives_back(lease));
  Result<> done;
  if (orderly) {
    const LeaseEvent how = lease.release_event.value_or(LeaseEvent::release_expired);
    done = co_await place->release(known, how);
  } else {
    done = co_await place->destroy(known);
  }
  if (!done) co_return std::unexpected(without_secrets(done.error(), known.secrets));
  co_return done;
}

Task<> LeaseLifecycle::destroy(const core::Sandbox& sandbox) {
  BERTH_CO_TRY(places::Place* const place, place_of(sandbox));
  BERTH_CO_TRY(const places::PlaceRef known, co_await facts(sandbox));
  const Result<> done = co_await place->destroy(known);
  if (!done) co_return std::unexpected(without_secrets(done.error(), known.secrets));
  co_return done;
}

Result<> LeaseLifecycle::end_sandbox(store::Session& session, const LeaseRecord& lease) {
  if (!lease.sandbox_id) return {};
  const Time now = services_.clock.now();
  BERTH_TRY(auto sandbox,
            store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id));
  if (core::is_final(sandbox.value.status) || sandbox.value.lease_id != lease.id) return {};
  if (gives_back(lease) && lease.status == LeaseState::releasing) {
    sandbox.value.expires_at = now + idle_sandbox_ms;
    BERTH_DO(store::move_sandbox(session, std::move(sandbox), SandboxEvent::given_back, now));
    return {};
  }
  sandbox.value.parked_at.reset();
  BERTH_DO(store::bury_sandbox(session, std::move(sandbox), now));
  return {};
}

Result<> LeaseLifecycle::drop_needs(store::Session& session, const LeaseRecord& lease) {
  BERTH_DO(drop_secrets(session, call_of(lease), lease.teardown.config));
  return store::make_due(session, lease.teardown.template_id, services_.clock.now());
}

Result<> LeaseLifecycle::drop_needs(store::Session& session, const core::Sandbox& sandbox) {
  return drop_secrets(session, system_call(sandbox.company_id), sandbox.config);
}

Result<> LeaseLifecycle::drop_secrets(store::Session& session, const core::Call& call,
                                      const bj::object& config) {
  for (const core::BoundRef& bound : core::refs_in(config)) {
    const auto secret = store::find_secret(session, core::Reach::everything(), bound.ref.secret_id);
    if (!secret || !secret->value.owned_by_environment_id) continue;
    BERTH_DO(drop_unused_owned(session, services_, call, *secret->value.owned_by_environment_id));
  }
  return {};
}

Result<LeaseLifecycle::Row> LeaseLifecycle::record_settled(store::Session& session,
                                                           const core::LeaseId& id,
                                                           const Result<>& outcome) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  if (core::is_final(row.value.status)) return row;
  LeaseRecord& lease = row.value;
  lease.claimed_by.reset();
  lease.claimed_until.reset();
  if (!outcome) {
    if (is_untraceable(lease)) return park_unanswered(session, std::move(row));
    ++lease.attempts;
    lease.cleanup_status = core::CleanupStatus::failed;
    lease.failure_reason =
        std::string{name_of(outcome.error().code)} + ": " + outcome.error().message;
    lease.next_attempt_at = now + teardown_pause_ms(lease.attempts);
    BERTH_TRY(row, store::move_lease(session, std::move(row), LeaseEvent::teardown_failed, now));
    if (row.value.attempts < teardown_attempts_max) return row;
    log::warn("lease.parked", {{"lease", id}, {"attempts", row.value.attempts}});
    return store::park_lease(session, std::move(row), now);
  }
  BERTH_DO(end_sandbox(session, lease));
  lease.cleanup_status = core::CleanupStatus::success;
  LeaseEvent event = lease.release_event.value_or(LeaseEvent::release_expired);
  if (lease.status == LeaseState::acquiring) event = LeaseEvent::acquire_failed;
  if (lease.status == LeaseState::pending_cleanup) event = LeaseEvent::cleaned_up;
  BERTH_TRY(row, store::move_lease(session, std::move(row), event, now));
  BERTH_DO(drop_needs(session, row.value));
  BERTH_DO(end_release_phase(session, row.value, now));
  BERTH_DO(record(session, services_, call_of(row.value),
                  entry_of(row.value, "environment.lease_released")));
  return row;
}

Result<LeaseLifecycle::Row> LeaseLifecycle::begin_end(store::Session& session, Row lease) {
  const LeaseState status = lease.value.status;
  if (status != LeaseState::active && status != LeaseState::retained) return lease;
  const LeaseEvent how = status == LeaseState::retained
                             ? LeaseEvent::release_expired
                             : lease.value.release_event.value_or(LeaseEvent::release_expired);
  return begin_release(session, std::move(lease), how);
}

Result<std::optional<Time>> LeaseLifecycle::gone_with(
    store::Session& session, const std::optional<core::NodeId>& server) const {
  if (!server) return Time{};
  BERTH_TRY(const auto holder, store::find_node(session, *server));
  if (!holder) return Time{};
  if (!holder->fenced_at) return std::nullopt;
  return *holder->fenced_at + hold_ms_;
}

Result<LeaseLifecycle::Row> LeaseLifecycle::leave(store::Session& session,
                                                  const core::LeaseId& id) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  if (core::is_final(row.value.status)) return row;
  BERTH_TRY(const std::optional<Time> gone, gone_with(session, row.value.node_id));
  BERTH_TRY(row, begin_end(session, std::move(row)));
  row.value.claimed_by.reset();
  row.value.claimed_until.reset();
  row.value.next_attempt_at = gone.value_or(now);
  const bool is_gone = gone && *gone <= now;
  if (is_gone && !row.value.failure_reason) row.value.failure_reason = "node_lost";
  BERTH_TRY(row, store::update_lease(session, std::move(row), now));
  return is_gone ? record_settled(session, id, {}) : row;
}

Result<> LeaseLifecycle::leave(store::Session& session, const core::SandboxId& id) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  BERTH_TRY(auto row, store::find_sandbox(session, core::Reach::everything(), id));
  if (core::is_final(row.value.status)) return {};
  BERTH_TRY(const std::optional<Time> gone, gone_with(session, row.value.node_id));
  if (row.value.status != core::SandboxState::destroying) {
    BERTH_TRY(row, store::move_sandbox(session, std::move(row), SandboxEvent::destroy_begun, now));
  }
  if (gone && *gone <= now) {
    const core::Sandbox lost = row.value;
    row.value.failure_reason = "node_lost";
    BERTH_DO(store::move_sandbox(session, std::move(row), SandboxEvent::destroyed, now));
    return drop_needs(session, lost);
  }
  row.value.next_attempt_at = gone.value_or(now);
  BERTH_DO(store::update_sandbox(session, std::move(row), now));
  return {};
}

Task<LeaseLifecycle::Row> LeaseLifecycle::settle(Row lease) {
  const core::LeaseId id = lease.value.id;
  if (!reaches(lease.value)) {
    BERTH_CO_TRY(Row left, co_await services_.store.write(
                               [&](store::Session& s) -> Result<Row> { return leave(s, id); }));
    services_.feed.changed(left.value.company_id);
    co_return left;
  }
  if (lease.value.status == LeaseState::active || lease.value.status == LeaseState::retained) {
    BERTH_CO_TRY(const places::PlaceRef known, co_await facts(lease.value));
    BERTH_CO_TRY(const auto used, co_await measure(lease.value, known));
    if (used && lease.value.metadata) (*lease.value.metadata)["usage"] = *used;
    const auto begin = [&](store::Session& s) -> Result<Row> {
      BERTH_DO(expect_alive(s, node_));
      return begin_end(s, lease);
    };
    BERTH_CO_TRY(lease, co_await services_.store.write(begin));
  }
  fault_point("release.intended");
  const Result<> acted = co_await act(lease.value);
  fault_point("release.acted");
  if (!acted && acted.error().code == Errc::cancelled) co_return std::unexpected(acted.error());
  BERTH_CO_TRY(Row row, co_await services_.store.write(
                            [&](store::Session& s) { return record_settled(s, id, acted); }));
  fault_point("release.recorded");
  services_.feed.changed(row.value.company_id);
  co_return row;
}

Result<LeaseLifecycle::Row> LeaseLifecycle::force_end(store::Session& session, Row lease,
                                                      const std::string& reason) {
  const Time now = services_.clock.now();
  BERTH_TRY(Row row, store::force_resolve_lease(session, std::move(lease), reason, now));
  if (row.value.sandbox_id) {
    BERTH_TRY(auto sandbox,
              store::find_sandbox(session, core::Reach::everything(), *row.value.sandbox_id));
    if (!core::is_final(sandbox.value.status) && sandbox.value.lease_id == row.value.id) {
      sandbox.value.failure_reason = reason;
      sandbox.value.parked_at.reset();
      BERTH_DO(store::move_sandbox(session, std::move(sandbox), SandboxEvent::vanished, now));
    }
  }
  BERTH_DO(drop_needs(session, row.value));
  return row;
}

Task<> LeaseLifecycle::settle(core::Stored<core::Sandbox> sandbox) {
  if (!reaches(sandbox.value)) {
    co_return co_await services_.store.write(
        [&](store::Session& s) -> Result<> { return leave(s, sandbox.value.id); });
  }
  const Time now = services_.clock.now();
  const auto begin = [&](store::Session& s) -> Result<core::Stored<core::Sandbox>> {
    BERTH_DO(expect_alive(s, node_));
    auto row = sandbox;
    if (row.value.status != core::SandboxState::destroying) {
      BERTH_TRY(row, store::move_sandbox(s, std::move(row), SandboxEvent::destroy_begun, now));
    }
    return store::claim_due_sandbox(s, std::move(row), node_, now + end_claim_ms, now);
  };
  BERTH_CO_TRY(sandbox, co_await services_.store.write(begin));
  fault_point("sandbox.destroy_intended");

  const core::Sandbox& row = sandbox.value;
  const Result<> acted = co_await destroy(row);
  fault_point("sandbox.destroy_acted");
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(expect_alive(s, node_));
    BERTH_TRY(auto current, store::find_sandbox(s, core::Reach::everything(), row.id));
    if (acted) {
      BERTH_DO(store::move_sandbox(s, std::move(current), SandboxEvent::destroyed, now));
      return drop_needs(s, row);
    }
    current.value.failure_reason =
        std::string{name_of(acted.error().code)} + ": " + acted.error().message;
    current.value.next_attempt_at = now + teardown_pause_ms(current.value.attempts);
    if (current.value.attempts < teardown_attempts_max) {
      BERTH_DO(store::update_sandbox(s, std::move(current), now));
    } else {
      BERTH_DO(store::park_sandbox(s, std::move(current), now));
    }
    return {};
  });
}

}  // namespace berth::engine
