#include "engine/lease_work.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "core/environment_config.hpp"
#include "core/fingerprint.hpp"
#include "core/provider_config.hpp"
#include "engine/environment_secrets.hpp"
#include "engine/held_lease.hpp"
#include "engine/insist.hpp"
#include "engine/journal.hpp"
#include "engine/lease_trace.hpp"
#include "engine/node_life.hpp"
#include "engine/start_from.hpp"
#include "store/leases.hpp"
#include "store/runs.hpp"
#include "store/sandboxes.hpp"
#include "store/secrets.hpp"
#include "store/templates.hpp"

#include <boost/asio/this_coro.hpp>

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
constexpr std::int64_t keep_again_ms = 1000;         // sooner than any command lapses
constexpr std::int64_t claim_ms = 10LL * 60 * 1000;  // longer than any one attempt takes

// The environment may ask for a policy in its metadata; a sandbox's config asks for reuse.
LeasePolicy policy_of(const core::Environment& environment) {
  std::optional<LeasePolicy> asked;
  if (environment.metadata) {
    const bj::value* value = environment.metadata->if_contains("leasePolicy");
    if (value != nullptr && value->is_string()) {
      asked = parse_name<LeasePolicy>(std::string_view{value->get_string()});
    }
  }
  const bj::value* reuse = environment.config.if_contains("reuseLease");
  const bool may_reuse = environment.driver == core::DriverKind::sandbox && reuse != nullptr &&
                         reuse->is_bool() && reuse->get_bool();
  if (may_reuse) {
    const bool by_workspace = asked == LeasePolicy::reuse_by_execution_workspace;
    return by_workspace ? *asked : LeasePolicy::reuse_by_environment;
  }
  return asked == LeasePolicy::retain_on_failure ? *asked : LeasePolicy::ephemeral;
}

bool is_reuse(LeasePolicy policy) {
  return policy == LeasePolicy::reuse_by_environment ||
         policy == LeasePolicy::reuse_by_execution_workspace;
}

// Whether the sandbox serves others after this lease: only one that its run left in order.
bool gives_back(const LeaseRecord& lease) {
  return lease.sandbox_id && is_reuse(lease.lease_policy) &&
         lease.release_event == LeaseEvent::release_succeeded;
}

core::Call call_of(const LeaseRecord& lease) {
  return {.who = {.kind = core::CallerKind::system, .company_id = lease.company_id},
          .run_id = lease.heartbeat_run_id};
}

// The plugin that a lease is pinned to, in the place where its provider looks for it.
void pin(const core::Teardown& teardown, bj::object& metadata) {
  if (teardown.plugin_id) metadata["pluginId"] = teardown.plugin_id->str();
}

Result<std::string> fingerprint_of(store::Session& session, const core::Environment& environment,
                                   const std::optional<core::TemplateId>& from,
                                   const std::optional<core::AgentId>& agent,
                                   const bj::object& spelled) {
  core::ReuseKey key{.company_id = environment.company_id,
                     .environment_id = environment.id,
                     .provider = core::provider_of(environment.config),
                     .config = environment.config,
                     .agent_id = agent};
  if (from) key.template_id = from->str();
  for (const core::BoundRef& bound : core::refs_in(spelled)) {
    BERTH_TRY(const auto secret,
              store::find_secret(session, core::Reach::only(environment.company_id),
                                 bound.ref.secret_id));
    key.secret_versions.emplace(secret.value.id.str(), secret.value.latest_version);
  }
  return core::fingerprint(key);
}

// What the provider says never replaces what we know ourselves.
bj::object lease_metadata(const LeaseRecord& lease, const drivers::Acquired& acquired) {
  bj::object metadata = acquired.metadata;
  metadata["driver"] = name_of(lease.driver);
  metadata["executionWorkspaceMode"] = nullptr;
  return metadata;
}

Entry entry_of(const LeaseRecord& lease, std::string_view action) {
  bj::object details{{"driver", name_of(lease.driver)},
                     {"leasePolicy", name_of(lease.lease_policy)},
                     {"status", name_of(lease.status)}};
  if (lease.environment_id) details["environmentId"] = lease.environment_id->str();
  if (lease.provider) details["provider"] = *lease.provider;
  if (lease.failure_reason) details["failureReason"] = *lease.failure_reason;
  return {lease.company_id, action, "environment_lease", lease.id.str(), std::move(details)};
}

void note_none_made(LeaseRecord& lease) {
  lease.teardown.acquire_trace = core::AcquireTrace::none_made;
}

// What the provider told of the place, on the row that outlives the lease.
Result<> record_sandbox(store::Session& session, const std::optional<core::SandboxId>& id,
                        const drivers::Acquired& acquired, Time now) {
  if (!id) return {};
  BERTH_TRY(auto sandbox, store::find_sandbox(session, core::Reach::everything(), *id));
  sandbox.value.provider_lease_id = acquired.provider_lease_id;
  sandbox.value.metadata = acquired.metadata;
  const bool is_new = sandbox.value.status == core::SandboxState::creating;
  BERTH_DO(is_new ? store::move_sandbox(session, std::move(sandbox), SandboxEvent::created, now)
                  : store::update_sandbox(session, std::move(sandbox), now));
  return {};
}

// The last line of the run's time line.
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

Result<drivers::Driver*> LeaseWork::driver(const LeaseRecord& lease) const {
  return drivers_.find(lease.driver);
}

Result<> LeaseWork::intend_sandbox(store::Session& session, const core::Environment& environment,
                                   const std::optional<core::AgentId>& agent, LeaseRecord& lease) {
  const Time now = lease.created_at;
  std::string fingerprint;  // none: a sandbox that serves one lease is never looked for
  if (is_reuse(lease.lease_policy)) {
    BERTH_TRY(fingerprint, fingerprint_of(session, environment, lease.teardown.template_id, agent,
                                          lease.teardown.config));
    BERTH_TRY(auto idle, store::claim_idle_sandbox(
                             session, {lease.company_id, fingerprint, lease.id, node_}, now));
    if (idle) {
      lease.sandbox_id = idle->value.id;
      lease.provider_lease_id = idle->value.provider_lease_id;
      lease.teardown.plugin_id = idle->value.plugin_id;
      lease.teardown.plugin_version = idle->value.plugin_version;
      return {};
    }
  }
  const core::Sandbox sandbox{.id = core::SandboxId::make(means_.random, now),
                              .company_id = lease.company_id,
                              .environment_id = environment.id,
                              .agent_id = agent,
                              .lease_id = lease.id,
                              .node_id = node_,
                              .provider = core::provider_of(environment.config),
                              .plugin_id = lease.teardown.plugin_id,
                              .plugin_version = lease.teardown.plugin_version,
                              .config = lease.teardown.config,
                              .fingerprint = std::move(fingerprint),
                              .last_used_at = now,
                              .created_at = now,
                              .updated_at = now};
  lease.sandbox_id = sandbox.id;
  return store::insert_sandbox(session, sandbox);
}

Result<LeaseWork::Row> LeaseWork::intend(store::Session& session, core::LeaseId id,
                                         const core::Environment& environment, const core::Run* run,
                                         Terms terms) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = means_.clock.now();
  LeaseRecord lease{{.id = std::move(id),
                     .company_id = environment.company_id,
                     .environment_id = environment.id,
                     .lease_policy = run ? policy_of(environment) : LeasePolicy::ephemeral,
                     .acquired_at = now,
                     .last_used_at = now,
                     .expires_at = terms.expires_at,
                     .created_at = now,
                     .updated_at = now}};
  if (run) lease.heartbeat_run_id = run->id;
  lease.node_id = node_;
  lease.driver = environment.driver;
  BERTH_TRY(StartFrom start, start_from(session, environment, terms.from));
  BERTH_TRY(lease.teardown.config, spelled_out(session, environment.id, std::move(start.config)));
  if (const auto plugin = catalog_.plugin_for(environment.driver, environment.config)) {
    lease.teardown.plugin_id = plugin->id;
    lease.teardown.plugin_version = plugin->version;
  }
  lease.teardown.template_id = std::move(start.template_id);
  if (terms.after == Terms::After::restart_keeps_it) lease.teardown.kept = true;
  lease.teardown.setup_session_id = std::move(terms.setup);
  if (environment.driver == core::DriverKind::sandbox) {
    // A provider that finds sandboxes again by their environment must not hand out a shared one.
    if (!run && environment.config.contains("reuseLease")) {
      lease.teardown.config["reuseLease"] = false;
    }
    lease.provider = core::provider_of(environment.config);
    const std::optional<core::AgentId> agent = run ? run->agent_id : std::nullopt;
    BERTH_DO(intend_sandbox(session, environment, agent, lease));
  }
  return store::inserted_lease(session, std::move(lease));
}

Task<drivers::LeaseFacts> LeaseWork::facts(const LeaseRecord& lease) {
  drivers::LeaseFacts out{.lease_id = lease.id,
                          .company_id = lease.company_id,
                          .environment_id = lease.environment_id,
                          .run_id = lease.heartbeat_run_id,
                          .sandbox_id = lease.sandbox_id,
                          .config = lease.teardown.config,
                          .provider_lease_id = lease.provider_lease_id,
                          .metadata = lease.metadata.value_or(bj::object{})};
  pin(lease.teardown, out.metadata);
  for (const core::BoundRef& bound : core::refs_in(out.config)) {
    // The row is the permission: the binding went when the environment was changed or deleted.
    SecretRead read{
        .company_id = lease.company_id,
        .secret_id = bound.ref.secret_id,
        .target_type = core::SecretTarget::environment,
        .target_id = lease.environment_id ? lease.environment_id->str() : lease.id.str(),
        .config_path = bound.path};
    const core::Call call = call_of(lease);
    BERTH_CO_TRY(ResolvedSecret found,
                 co_await secrets_.resolve_unbound(call, std::move(read), bound.ref.version));
    out.secrets.emplace(bound.path, std::move(found.value));
  }
  co_return out;
}

Task<drivers::LeaseFacts> LeaseWork::facts(const core::Template& row) {
  drivers::LeaseFacts out{
      .lease_id = row.source_lease_id.value_or(*core::LeaseId::parse(row.id.str())),
      .company_id = row.company_id,
      .environment_id = row.environment_id,
      .config = row.config,
      .metadata = row.metadata};
  const core::Call call{.who = {.kind = core::CallerKind::system, .company_id = row.company_id}};
  for (const core::BoundRef& bound : core::refs_in(out.config)) {
    SecretRead read{.company_id = row.company_id,
                    .secret_id = bound.ref.secret_id,
                    .target_type = core::SecretTarget::environment,
                    .target_id = row.environment_id ? row.environment_id->str() : row.id.str(),
                    .config_path = bound.path};
    Result<ResolvedSecret> found =
        co_await secrets_.resolve_unbound(call, std::move(read), bound.ref.version);
    if (found) {
      out.secrets.emplace(bound.path, std::move(found->value));
    } else if (found.error().code == Errc::cancelled) {
      co_return std::unexpected(found.error());
    }
  }
  co_return out;
}

Result<LeaseWork::Row> LeaseWork::record_acquired(store::Session& session, const core::LeaseId& id,
                                                  const drivers::Acquired& acquired) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = means_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  LeaseRecord& lease = row.value;
  lease.provider = acquired.provider;
  lease.provider_lease_id = acquired.provider_lease_id;
  lease.metadata = lease_metadata(lease, acquired);
  if (acquired.expires_at) lease.expires_at = acquired.expires_at;
  lease.acquired_at = now;
  BERTH_TRY(row, store::move_lease(session, std::move(row), LeaseEvent::acquired, now));
  BERTH_DO(record_sandbox(session, row.value.sandbox_id, acquired, now));
  BERTH_DO(record(session, means_, call_of(row.value),
                  entry_of(row.value, "environment.lease_acquired")));
  return row;
}

Result<LeaseWork::Row> LeaseWork::record_again(store::Session& session, const core::LeaseId& id,
                                               const drivers::Acquired& acquired) {
  const Time now = means_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  BERTH_DO(expect_held(row.value, node_));
  row.value.provider_lease_id = acquired.provider_lease_id;
  row.value.metadata = lease_metadata(row.value, acquired);
  BERTH_DO(record_sandbox(session, row.value.sandbox_id, acquired, now));
  return store::update_lease(session, std::move(row), now);
}

Task<LeaseWork::Held> LeaseWork::acquire(Row lease, Ask ask, Also also) {
  fault_point("acquire.intended");
  BERTH_CO_TRY(drivers::Driver* const place, driver(lease.value));
  const bool by_key = place->finds_by_key(lease.value.teardown.config);
  BERTH_CO_TRY(drivers::LeaseFacts known, co_await facts(lease.value));
  drivers::AcquireRequest request{.lease = known.clone(),
                                  .callback = std::move(ask.callback),
                                  .reusable_id = lease.value.provider_lease_id,
                                  .setup = std::move(ask.setup)};
  const bool asks_again = !by_key && ask.before == Ask::Before::maybe;
  const Result<drivers::Acquired> acquired =
      asks_again ? co_await acquire_again(*place, std::move(request))
                 : co_await place->acquire(request);
  if (!acquired) {
    const bool is_known = !by_key && !asks_again && made_none(acquired.error().code);
    if (is_known) co_await change_lease(lease.value.id, &note_none_made);
    co_return std::unexpected(without_secrets(acquired.error(), known.secrets));
  }
  fault_point("acquire.acted");
  const auto save = [&](store::Session& s) -> Result<Row> {
    BERTH_TRY(Row row, record_acquired(s, lease.value.id, *acquired));
    if (also) BERTH_DO(also(s));
    return row;
  };
  // Who is found by an answer alone must not be forgotten because the store is away.
  const auto attempt = [&] { return means_.store.write(save); };
  Result<Row> row =
      by_key ? co_await attempt() : co_await insist(co_await asio::this_coro::executor, attempt);
  if (!row) co_return std::unexpected(std::move(row).error());
  fault_point("acquire.recorded");
  known.provider_lease_id = row->value.provider_lease_id;
  known.metadata = row->value.metadata.value_or(bj::object{});
  pin(row->value.teardown, known.metadata);
  co_return Held{*std::move(row), std::move(known)};
}

Result<LeaseWork::Row> LeaseWork::begin_release(store::Session& session, Row lease,
                                                LeaseEvent how) {
  const Time now = means_.clock.now();
  lease.value.release_event = how;
  // Whoever begins it ends it; should that fail without a word, the sweeper looks.
  lease.value.next_attempt_at = now + claim_ms;
  // One that was never acquired has no state between: whatever the driver may hold of it is
  // destroyed, and then the row ends.
  if (lease.value.status == LeaseState::acquiring) {
    return store::update_lease(session, std::move(lease), now);
  }
  const bool keeps = lease.value.lease_policy == LeasePolicy::retain_on_failure &&
                     lease.value.status == LeaseState::active && how == LeaseEvent::release_failed;
  if (keeps) {
    lease.value.expires_at = now + retained_ms;
    // Soon, so that its place is renewed also when this server dies before it has done so.
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

Task<> LeaseWork::keep(const LeaseRecord& lease, const drivers::LeaseFacts& known) {
  BERTH_CO_TRY(drivers::Driver* const place, driver(lease));
  const Time until = lease.expires_at.value_or(means_.clock.now() + retained_ms);
  const std::int64_t left_ms = std::max<std::int64_t>(until - means_.clock.now(), 0);
  const Result<> kept = co_await place->renew(known, left_ms + retained_slack_ms);
  if (!kept && kept.error().code != Errc::cancelled) {
    log::warn("lease.not_kept", {{"lease", lease.id}, {"error", kept.error().message}});
  }
  co_return Result<>{};
}

Task<std::optional<bj::object>> LeaseWork::measure(const LeaseRecord& lease,
                                                   const drivers::LeaseFacts& known) {
  BERTH_CO_TRY(drivers::Driver* const place, driver(lease));
  const Result<execution::Usage> used = co_await place->usage(known);
  if (used) co_return encode(*used).as_object();
  if (used.error().code == Errc::cancelled) co_return std::unexpected(used.error());
  co_return std::nullopt;
}

Task<> LeaseWork::act(LeaseRecord lease) {
  BERTH_CO_TRY(drivers::Driver* const place, driver(lease));
  const bool was_acquired = lease.metadata.has_value();
  if (!was_acquired && !place->finds_by_key(lease.teardown.config)) {
    co_return co_await end_unanswered(lease.id);
  }
  BERTH_CO_TRY(const drivers::LeaseFacts known, co_await facts(lease));
  const bool orderly =
      lease.status == LeaseState::releasing && (!is_reuse(lease.lease_policy) || gives_back(lease));
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

Result<> LeaseWork::end_sandbox(store::Session& session, const LeaseRecord& lease) {
  if (!lease.sandbox_id) return {};
  const Time now = means_.clock.now();
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

Result<> LeaseWork::drop_needs(store::Session& session, const LeaseRecord& lease) {
  const core::Call call = call_of(lease);
  for (const core::BoundRef& bound : core::refs_in(lease.teardown.config)) {
    const auto secret = store::find_secret(session, core::Reach::everything(), bound.ref.secret_id);
    if (!secret || !secret->value.owned_by_environment_id) continue;
    BERTH_DO(drop_unused_owned(session, means_, call, *secret->value.owned_by_environment_id));
  }
  return store::make_due(session, lease.teardown.template_id, means_.clock.now());
}

Result<LeaseWork::Row> LeaseWork::record_settled(store::Session& session, const core::LeaseId& id,
                                                 const Result<>& outcome) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = means_.clock.now();
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
  BERTH_DO(record(session, means_, call_of(row.value),
                  entry_of(row.value, "environment.lease_released")));
  return row;
}

Task<LeaseWork::Row> LeaseWork::settle(Row lease) {
  const core::LeaseId id = lease.value.id;
  if (lease.value.status == LeaseState::active || lease.value.status == LeaseState::retained) {
    BERTH_CO_TRY(const drivers::LeaseFacts known, co_await facts(lease.value));
    BERTH_CO_TRY(const auto used, co_await measure(lease.value, known));
    if (used && lease.value.metadata) (*lease.value.metadata)["usage"] = *used;
    const auto begin = [&](store::Session& s) -> Result<Row> {
      BERTH_DO(expect_alive(s, node_));
      return begin_release(s, lease,
                           lease.value.status == LeaseState::retained
                               ? LeaseEvent::release_expired
                               : lease.value.release_event.value_or(LeaseEvent::release_expired));
    };
    BERTH_CO_TRY(lease, co_await means_.store.write(begin));
  }
  fault_point("release.intended");
  const Result<> acted = co_await act(lease.value);
  fault_point("release.acted");
  if (!acted && acted.error().code == Errc::cancelled) co_return std::unexpected(acted.error());
  BERTH_CO_TRY(Row row, co_await means_.store.write(
                            [&](store::Session& s) { return record_settled(s, id, acted); }));
  fault_point("release.recorded");
  means_.feed.changed(row.value.company_id);
  co_return row;
}

Result<LeaseWork::Row> LeaseWork::force_end(store::Session& session, Row lease,
                                            const std::string& reason) {
  const Time now = means_.clock.now();
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

Task<ResolvedSecret> LeaseWork::read_for_draft(const core::Call& call,
                                               const core::CompanyId& company,
                                               const core::BoundRef& bound) {
  co_return co_await secrets_.resolve_unbound(call,
                                              {.company_id = company,
                                               .secret_id = bound.ref.secret_id,
                                               .target_type = core::SecretTarget::system,
                                               .target_id = "environment-probe-config",
                                               .config_path = bound.path},
                                              bound.ref.version);
}

Task<std::vector<core::LeaseId>> LeaseWork::held() {
  BERTH_CO_TRY(drivers::Driver* const local, drivers_.find(core::DriverKind::local));
  co_return co_await local->held();
}

Task<> LeaseWork::remove_held(core::LeaseId id) {
  BERTH_CO_TRY(drivers::Driver* const local, drivers_.find(core::DriverKind::local));
  // Whose it was is not known any more, and not asked by the driver of this machine.
  const drivers::LeaseFacts facts{.lease_id = id, .company_id = *core::CompanyId::parse(id.str())};
  co_return co_await local->destroy(facts);
}

Task<std::vector<drivers::HeldSandbox>> LeaseWork::held_sandboxes() {
  BERTH_CO_TRY(drivers::Driver* const sandboxes, drivers_.find(core::DriverKind::sandbox));
  co_return co_await sandboxes->held_sandboxes();
}

Task<> LeaseWork::remove_held(drivers::HeldSandbox sandbox) {
  BERTH_CO_TRY(drivers::Driver* const sandboxes, drivers_.find(core::DriverKind::sandbox));
  const drivers::LeaseFacts facts{.lease_id = *core::LeaseId::parse(sandbox.id.str()),
                                  .company_id = *core::CompanyId::parse(sandbox.id.str()),
                                  .sandbox_id = sandbox.id,
                                  .config = {{"provider", sandbox.provider}}};
  co_return co_await sandboxes->destroy(facts);
}

Task<> LeaseWork::settle(core::Stored<core::Sandbox> sandbox) {
  const Time now = means_.clock.now();
  const auto begin = [&](store::Session& s) -> Result<core::Stored<core::Sandbox>> {
    BERTH_DO(expect_alive(s, node_));
    auto row = sandbox;
    if (row.value.status != core::SandboxState::destroying) {
      BERTH_TRY(row, store::move_sandbox(s, std::move(row), SandboxEvent::destroy_begun, now));
    }
    return store::claim_due_sandbox(s, std::move(row), node_, now + claim_ms, now);
  };
  BERTH_CO_TRY(sandbox, co_await means_.store.write(begin));
  fault_point("sandbox.destroy_intended");

  const core::Sandbox& row = sandbox.value;
  // No lease holds it any more; the driver finds it by the provider's id and by its own key.
  LeaseRecord stand_in{{.id = *core::LeaseId::parse(row.id.str()),
                        .company_id = row.company_id,
                        .environment_id = row.environment_id,
                        .status = LeaseState::pending_cleanup,
                        .provider = row.provider,
                        .provider_lease_id = row.provider_lease_id,
                        .metadata = row.metadata}};
  stand_in.sandbox_id = row.id;
  stand_in.driver = core::DriverKind::sandbox;
  stand_in.teardown.config = row.config;
  stand_in.teardown.plugin_id = row.plugin_id;
  const Result<> acted = co_await act(stand_in);
  fault_point("sandbox.destroy_acted");
  co_return co_await means_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(expect_alive(s, node_));
    BERTH_TRY(auto current, store::find_sandbox(s, core::Reach::everything(), row.id));
    if (acted) {
      BERTH_DO(store::move_sandbox(s, std::move(current), SandboxEvent::destroyed, now));
      return drop_needs(s, stand_in);
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
