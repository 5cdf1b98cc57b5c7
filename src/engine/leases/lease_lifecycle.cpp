#include "engine/leases/lease_lifecycle.hpp"

#include "base/fault_point.hpp"
#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/provider_config.hpp"
#include "core/fingerprint.hpp"
#include "engine/environments/allowed_places.hpp"
#include "engine/journal.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_notes.hpp"
#include "engine/leases/reuse.hpp"
#include "engine/leases/sandbox_room.hpp"
#include "engine/retry.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/templates/start_from.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/agents.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandbox_names.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"
#include "store/secrets.hpp"

#include <boost/asio/this_coro.hpp>

namespace berth::engine {
namespace {

using core::LeaseEvent;
using core::LeasePolicy;
using core::LeaseRecord;
using core::LeaseState;
using core::SandboxEvent;

// Stores the lease's pinned plugin where its provider looks for it.
void pin(const core::Teardown& teardown, bj::object& metadata) {
  if (teardown.plugin_id) metadata["pluginId"] = teardown.plugin_id->str();
}

Result<std::string> fingerprint_of(store::Session& session, const core::Environment& environment,
                                   const std::optional<core::AgentId>& agent,
                                   const LeaseRecord& lease) {
  core::ReuseKey key{.company_id = environment.company_id,
                     .environment_id = environment.id,
                     .provider = core::provider_of(environment.config),
                     .config = environment.config,
                     .plugin_version = lease.teardown.plugin_version,
                     .agent_id = agent};
  if (lease.teardown.template_id) key.template_id = lease.teardown.template_id->str();
  if (lease.lease_policy == LeasePolicy::reuse_by_execution_workspace) {
    key.execution_workspace_id = lease.execution_workspace_id;
  }
  // The home folder is mounted in the sandbox, and a reset replaces it.
  if (lease.teardown.home_id) key.config["agentHomeId"] = lease.teardown.home_id->str();
  for (const core::BoundRef& bound : core::refs_in(lease.teardown.config)) {
    BERTH_TRY(const auto secret,
              store::find_secret(session, core::Reach::only(environment.company_id),
                                 bound.ref.secret_id));
    key.secret_versions.emplace(secret.value.id.str(), secret.value.latest_version);
  }
  return core::fingerprint(key);
}

// Provider metadata never overrides our own facts.
bj::object lease_metadata(const LeaseRecord& lease, const places::Acquired& acquired) {
  bj::object metadata = acquired.metadata;
  metadata["driver"] = name_of(lease.driver);
  metadata["executionWorkspaceMode"] = nullptr;
  return metadata;
}

// The issue that the run works on, if its caller named one.
std::optional<core::IssueId> issue_of(const core::Run& run) {
  return peek<core::IssueId>(run.context_snapshot, "issueId");
}

void note_none_made(LeaseRecord& lease) {
  lease.teardown.acquire_trace = core::AcquireTrace::none_made;
}

// Gives the lease a sandbox that no later lease gets. The policy is fixed once the row exists; the
// config says the same.
void serve_alone(LeaseRecord& lease) {
  lease.lease_policy = LeasePolicy::ephemeral;
  forbid_reuse(lease.driver, lease.teardown.config);
}

// Assigns an idle sandbox to the lease.
void take_over(const core::Sandbox& idle, LeaseRecord& lease) {
  lease.sandbox_id = idle.id;
  lease.provider_lease_id = idle.provider_lease_id;
  lease.teardown.plugin_id = idle.plugin_id;
  lease.teardown.plugin_version = idle.plugin_version;
}

// Adds what a plugin needs to know about a lease, where it looks for it: its pinned plugin, the
// agent that uses it, and until when. An idle sandbox is resumed with the metadata that its
// provider returned at creation.
Result<> add_plugin_facts(store::Session& session, const LeaseRecord& lease, bj::object& metadata) {
  const auto everywhere = core::Reach::everything();
  const bool was_claimed = !lease.metadata && lease.provider_lease_id;
  if (lease.sandbox_id && was_claimed) {
    BERTH_TRY(auto sandbox, store::find_sandbox(session, everywhere, *lease.sandbox_id));
    metadata = std::move(sandbox.value.metadata);
  }
  bj::object facts;
  if (lease.heartbeat_run_id) {
    const auto run = store::find_run(session, everywhere, *lease.heartbeat_run_id);
    if (run && run->value.agent_id) {
      facts["agentId"] = run->value.agent_id->str();
      const auto agent = store::find_agent(session, everywhere, *run->value.agent_id);
      if (agent) facts["adapterType"] = name_of(agent->value.adapter_type);
    }
  } else if (lease.sandbox_id && is_reuse(lease.lease_policy)) {
    // Some providers resume a sandbox only for the agent that it was created for.
    BERTH_TRY(const auto sandbox, store::find_sandbox(session, everywhere, *lease.sandbox_id));
    if (sandbox.value.agent_id) facts["agentId"] = sandbox.value.agent_id->str();
  }
  if (lease.issue_id) facts["issueId"] = lease.issue_id->str();
  if (lease.execution_workspace_id) {
    facts["executionWorkspaceId"] = lease.execution_workspace_id->str();
  } else if (is_reuse(lease.lease_policy) && lease.sandbox_id) {
    // Some providers resume a sandbox only for the workspace that it was created for. A reused
    // sandbox's workspace is its own folder, so the sandbox's id identifies it.
    facts["executionWorkspaceId"] = lease.sandbox_id->str();
  }
  if (lease.expires_at) facts["expiresAt"] = to_iso8601(*lease.expires_at);
  metadata["leaseFacts"] = std::move(facts);
  return {};
}

// The provider returned a sandbox that another lease holds. A lease that asked for reuse now asks
// for its own sandbox. If it already had, the result is lease_acquire_failed, and the lease must
// not destroy the returned sandbox.
Result<LeaseLifecycle::Row> give_up_shared(store::Session& session, LeaseLifecycle::Row row,
                                           Time now) {
  LeaseRecord& lease = row.value;
  if (!asks_for_reuse(lease.teardown.config)) {
    note_none_made(lease);
    return store::update_lease(session, std::move(row), now);
  }
  forbid_reuse(lease.driver, lease.teardown.config);
  if (lease.sandbox_id) {
    BERTH_TRY(auto sandbox,
              store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id));
    sandbox.value.config = lease.teardown.config;
    sandbox.value.fingerprint.clear();
    BERTH_DO(store::update_sandbox(session, std::move(sandbox), now));
  }
  return store::update_lease(session, std::move(row), now);
}

std::unexpected<Error> gave_away(const places::Acquired& acquired) {
  return fail(Errc::lease_acquire_failed,
              "provider \"" + acquired.provider + "\" answered with sandbox " +
                  acquired.provider_lease_id.value_or("") + ", which another lease holds",
              "report it to the author of the provider: a lease that does not ask for reuse must "
              "have a sandbox of its own");
}

// Records the provider's facts about the place on the sandbox's row, which outlives the lease.
Result<> record_sandbox(store::Session& session, const std::optional<core::SandboxId>& id,
                        const places::Acquired& acquired, Time now) {
  if (!id) return {};
  BERTH_TRY(auto sandbox, store::find_sandbox(session, core::Reach::everything(), *id));
  sandbox.value.provider_lease_id = acquired.provider_lease_id;
  sandbox.value.metadata = acquired.metadata;
  const bool is_new = sandbox.value.status == core::SandboxState::creating;
  BERTH_DO(is_new ? store::move_sandbox(session, std::move(sandbox), SandboxEvent::created, now)
                  : store::update_sandbox(session, std::move(sandbox), now));
  return {};
}

}  // namespace

Result<places::Place*> LeaseLifecycle::place_of(const LeaseRecord& lease) const {
  return places_.find(lease.driver, lease.teardown.config, lease.metadata.value_or(bj::object{}));
}

Result<places::Place*> LeaseLifecycle::place_of(const core::Sandbox& sandbox) const {
  return places_.find(core::DriverKind::sandbox, sandbox.config, sandbox.metadata);
}

Result<places::Place*> LeaseLifecycle::place_of(const core::Template& row) const {
  return places_.find(core::DriverKind::sandbox, row.config);
}

bool LeaseLifecycle::reaches(const LeaseRecord& lease) const {
  if (!lease.node_id || *lease.node_id == node_) return true;
  const Result<places::Place*> place = place_of(lease);
  return place && (*place)->abilities().locality == places::Locality::anywhere;
}

bool LeaseLifecycle::reaches(const core::Sandbox& sandbox) const {
  if (!sandbox.node_id || *sandbox.node_id == node_) return true;
  const Result<places::Place*> place = place_of(sandbox);
  return place && (*place)->abilities().locality == places::Locality::anywhere;
}

// Whether the lease now owns an idle sandbox.
Result<bool> LeaseLifecycle::claim_kept(store::Session& session, const core::Sandbox& wanted,
                                        std::optional<core::SandboxId> only, LeaseRecord& lease) {
  BERTH_TRY(places::Place* const place, place_of(lease));
  const bool stays = place->abilities().locality == places::Locality::own_server;
  const store::SandboxClaim claim{.company_id = lease.company_id,
                                  .fingerprint = wanted.fingerprint,
                                  .lease_id = lease.id,
                                  .node_id = node_,
                                  .must_be_own = stays,
                                  .only = std::move(only)};
  BERTH_TRY(const auto idle, store::claim_idle_sandbox(session, claim, lease.created_at));
  if (idle) take_over(idle->value, lease);
  return idle.has_value();
}

Result<> LeaseLifecycle::intend_sandbox(store::Session& session,
                                        const core::Environment& environment,
                                        const std::optional<core::AgentId>& agent,
                                        LeaseRecord& lease) {
  const Time now = lease.created_at;
  core::Sandbox sandbox{.id = core::SandboxId::make(services_.random, now),
                        .company_id = lease.company_id,
                        .environment_id = environment.id,
                        .agent_id = agent,
                        .execution_workspace_id = lease.execution_workspace_id,
                        .lease_id = lease.id,
                        .node_id = node_,
                        .provider = core::provider_of(environment.config),
                        .plugin_id = lease.teardown.plugin_id,
                        .plugin_version = lease.teardown.plugin_version,
                        .last_used_at = now,
                        .created_at = now,
                        .updated_at = now};
  // Without a fingerprint, a sandbox serves one lease and is never reused.
  if (is_reuse(lease.lease_policy)) {
    BERTH_TRY(sandbox.fingerprint, fingerprint_of(session, environment, agent, lease));
    BERTH_DO(store::retire_idle_sandboxes(session, sandbox, now));
    BERTH_TRY(const bool was_kept, claim_kept(session, sandbox, std::nullopt, lease));
    if (was_kept) return {};
    BERTH_TRY(const bool is_shared,
              store::is_named_by_environment(session, lease.company_id, environment.id));
    if (is_shared) {
      serve_alone(lease);
      sandbox.fingerprint.clear();
    }
  }
  const bool lost_reuse = lease.heartbeat_run_id && asks_for_reuse(environment.config) &&
                          lacks_reuse(catalog_, environment.config);
  if (lost_reuse) BERTH_DO(store::retire_idle_sandboxes(session, sandbox, now));
  sandbox.config = lease.teardown.config;
  lease.sandbox_id = sandbox.id;
  BERTH_DO(store::insert_sandbox(session, sandbox));
  return store::record_share(session, sandbox.id, core::share_of(sandbox.config));
}

Result<> LeaseLifecycle::intend_visit(store::Session& session, const core::Environment& environment,
                                      const Terms::Kept& kept, LeaseRecord& lease) {
  core::Sandbox wanted{.id = kept.sandbox_id, .company_id = lease.company_id};
  bool was_kept = false;
  if (is_reuse(lease.lease_policy)) {
    BERTH_TRY(wanted.fingerprint, fingerprint_of(session, environment, kept.agent_id, lease));
    BERTH_TRY(was_kept, claim_kept(session, wanted, kept.sandbox_id, lease));
  }
  if (!was_kept) {
    return fail(Errc::conflict,
                "Sandbox " + kept.sandbox_id.str() + " is not kept for environment \"" +
                    environment.name + "\" as it is today",
                "restore the environment's config, or start a new run in it");
  }
  // However the lease ends, the sandbox is given back if it can be emptied.
  lease.release_event = LeaseEvent::release_succeeded;
  return {};
}

Result<LeaseLifecycle::Row> LeaseLifecycle::intend(store::Session& session, core::LeaseId id,
                                                   const core::Environment& environment,
                                                   const core::Run* run, Terms terms) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  LeaseRecord lease{
      {.id = std::move(id),
       .company_id = environment.company_id,
       .environment_id = environment.id,
       .lease_policy = run || terms.kept ? policy_of(environment) : LeasePolicy::ephemeral,
       .acquired_at = now,
       .last_used_at = now,
       .expires_at = terms.expires_at,
       .created_at = now,
       .updated_at = now}};
  if (run) {
    lease.heartbeat_run_id = run->id;
    lease.issue_id = issue_of(*run);
  }
  lease.node_id = node_;
  lease.driver = environment.driver;
  BERTH_DO(expect_allowed(session, services_, environment));
  BERTH_TRY(StartFrom start, start_from(session, environment, terms.from));
  BERTH_TRY(lease.teardown.config, spelled_out(session, environment.id, std::move(start.config)));
  if (const auto plugin = catalog_.plugin_for(environment.driver, environment.config)) {
    lease.teardown.plugin_id = plugin->id;
    lease.teardown.plugin_version = plugin->version;
  }
  lease.teardown.template_id = std::move(start.template_id);
  if (terms.after == Terms::After::restart_keeps_it) lease.teardown.kept = true;
  lease.teardown.setup_session_id = std::move(terms.setup);
  lease.teardown.home_id = std::move(terms.home);
  if (is_reuse(lease.lease_policy) && lacks_reuse(catalog_, environment.config)) serve_alone(lease);
  // A provider that finds sandboxes by environment must not return a shared one.
  if (!is_reuse(lease.lease_policy)) forbid_reuse(lease.driver, lease.teardown.config);
  if (environment.driver == core::DriverKind::sandbox) {
    if (terms.purpose == Terms::Purpose::test) lease.teardown.config["archiveOnRelease"] = true;
    lease.provider = core::provider_of(environment.config);
    if (terms.kept) {
      BERTH_DO(intend_visit(session, environment, *terms.kept, lease));
      return store::inserted_lease(session, std::move(lease));
    }
    if (!run) BERTH_DO(expect_sandbox_room(session, lease.company_id, lease.teardown.config));
    const std::optional<core::AgentId> agent = run ? run->agent_id : std::nullopt;
    BERTH_DO(intend_sandbox(session, environment, agent, lease));
  }
  return store::inserted_lease(session, std::move(lease));
}

Task<places::PlaceRef> LeaseLifecycle::facts(const LeaseRecord& lease) {
  places::PlaceRef out{.key = lease.id,
                       .driver = lease.driver,
                       .company_id = lease.company_id,
                       .environment_id = lease.environment_id,
                       .run_id = lease.heartbeat_run_id,
                       .sandbox_id = lease.sandbox_id,
                       .home_id = lease.teardown.home_id,
                       .config = lease.teardown.config,
                       .provider_lease_id = lease.provider_lease_id,
                       .metadata = lease.metadata.value_or(bj::object{})};
  if (lease.teardown.plugin_id) {
    BERTH_CO_DO(co_await services_.store.read(
        [&](store::Session& s) { return add_plugin_facts(s, lease, out.metadata); }));
  }
  pin(lease.teardown, out.metadata);
  if (lease.driver == core::DriverKind::ssh) {
    BERTH_CO_TRY(out.private_addresses, co_await services_.store.read([&](store::Session& s) {
      return private_addresses(s, services_, lease);
    }));
  }
  BERTH_CO_DO(co_await add_secrets(out, call_of(lease)));
  co_return out;
}

Task<places::PlaceRef> LeaseLifecycle::facts(const core::Sandbox& sandbox) {
  places::PlaceRef out{.key = sandbox.id,
                       .driver = core::DriverKind::sandbox,
                       .company_id = sandbox.company_id,
                       .environment_id = sandbox.environment_id,
                       .sandbox_id = sandbox.id,
                       .config = sandbox.config,
                       .provider_lease_id = sandbox.provider_lease_id,
                       .metadata = sandbox.metadata};
  if (sandbox.plugin_id) {
    out.metadata["leaseFacts"] = bj::object{};
    out.metadata["pluginId"] = sandbox.plugin_id->str();
  }
  BERTH_CO_DO(co_await add_secrets(out, system_call(sandbox.company_id)));
  co_return out;
}

Task<> LeaseLifecycle::add_secrets(places::PlaceRef& place, const core::Call& call) {
  for (const core::BoundRef& bound : core::refs_in(place.config)) {
    // The row is the permission: the binding was removed when the environment was changed or
    // deleted.
    SecretRead read{
        .company_id = *place.company_id,
        .secret_id = bound.ref.secret_id,
        .target_type = core::SecretTarget::environment,
        .target_id = place.environment_id ? place.environment_id->str() : place.key.str(),
        .config_path = bound.path};
    BERTH_CO_TRY(ResolvedSecret found,
                 co_await secrets_.resolve_unbound(call, std::move(read), bound.ref.version));
    place.secrets.emplace(bound.path, std::move(found.value));
  }
  co_return Result<>{};
}

Task<places::PlaceRef> LeaseLifecycle::facts(const core::Template& row) {
  places::PlaceRef out{.key = row.source_lease_id ? places::PlaceKey{*row.source_lease_id}
                                                  : places::PlaceKey{row.id},
                       .driver = core::DriverKind::sandbox,
                       .company_id = row.company_id,
                       .environment_id = row.environment_id,
                       .config = row.config,
                       .metadata = row.metadata};
  const core::Call call = system_call(row.company_id);
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

Result<LeaseLifecycle::Row> LeaseLifecycle::record_acquired(store::Session& session,
                                                            const core::LeaseId& id,
                                                            const places::Acquired& acquired) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  LeaseRecord& lease = row.value;
  lease.provider = acquired.provider;
  lease.provider_lease_id = acquired.provider_lease_id;
  lease.metadata = lease_metadata(lease, acquired);
  if (acquired.expires_at) lease.expires_at = acquired.expires_at;
  lease.acquired_at = now;
  BERTH_TRY(row, store::move_lease(session, std::move(row), LeaseEvent::acquired, now));
  BERTH_DO(record_sandbox(session, row.value.sandbox_id, acquired, now));
  BERTH_DO(record(session, services_, call_of(row.value),
                  entry_of(row.value, "environment.lease_acquired")));
  return row;
}

Result<LeaseLifecycle::Row> LeaseLifecycle::record_again(store::Session& session,
                                                         const core::LeaseId& id,
                                                         const places::Acquired& acquired) {
  const Time now = services_.clock.now();
  BERTH_TRY(Row row, store::find_lease_record(session, core::Reach::everything(), id));
  BERTH_DO(expect_held(row.value, node_));
  row.value.provider_lease_id = acquired.provider_lease_id;
  row.value.metadata = lease_metadata(row.value, acquired);
  BERTH_DO(record_sandbox(session, row.value.sandbox_id, acquired, now));
  return store::update_lease(session, std::move(row), now);
}

Task<LeaseLifecycle::Held> LeaseLifecycle::acquire(Row lease, Ask ask, Also also) {
  fault_point("acquire.intended");
  BERTH_CO_TRY(places::Place* const place, place_of(lease.value));
  const bool by_key = place->abilities().found_by_key;
  BERTH_CO_TRY(places::PlaceRef known, co_await facts(lease.value));
  Ask again{.callback = ask.callback, .setup = ask.setup};
  places::AcquireRequest request{.lease = known.clone(),
                                 .callback = std::move(ask.callback),
                                 .reusable_id = lease.value.provider_lease_id,
                                 .setup = std::move(ask.setup)};
  const bool asks_again = !by_key && ask.before == Ask::Before::maybe;
  const Result<places::Acquired> acquired = asks_again
                                                ? co_await acquire_again(*place, std::move(request))
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
  // If only this response identifies the sandbox, it must not be lost in a store outage.
  const auto attempt = [&] { return services_.store.write(save); };
  Result<Row> row = by_key
                        ? co_await attempt()
                        : co_await retry_during_outage(co_await asio::this_coro::executor, attempt);
  if (!row && store::is_held_elsewhere(row.error())) {
    const bool had_asked_to_share = asks_for_reuse(lease.value.teardown.config);
    const core::LeaseId id = lease.value.id;
    BERTH_CO_TRY(lease, co_await services_.store.write([&](store::Session& s) -> Result<Row> {
      BERTH_DO(expect_alive(s, node_));
      BERTH_TRY(Row seen, store::find_lease_record(s, core::Reach::everything(), id));
      return give_up_shared(s, std::move(seen), services_.clock.now());
    }));
    if (!had_asked_to_share) co_return gave_away(*acquired);
    co_return co_await acquire(std::move(lease), std::move(again), std::move(also));
  }
  if (!row) co_return std::unexpected(std::move(row).error());
  fault_point("acquire.recorded");
  known.provider_lease_id = row->value.provider_lease_id;
  known.metadata = row->value.metadata.value_or(bj::object{});
  if (row->value.teardown.plugin_id) {
    BERTH_CO_DO(co_await services_.store.read(
        [&](store::Session& s) { return add_plugin_facts(s, row->value, known.metadata); }));
  }
  pin(row->value.teardown, known.metadata);
  co_return Held{*std::move(row), std::move(known), acquired->resumed};
}

Task<ResolvedSecret> LeaseLifecycle::read_for_draft(const core::Call& call,
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

Task<std::vector<places::HeldPlace>> LeaseLifecycle::held(core::DriverKind driver) {
  return places_.held(driver);
}

Task<> LeaseLifecycle::remove_held(places::HeldPlace held) {
  const places::PlaceRef known = held.ref();
  BERTH_CO_TRY(places::Place* const place, places_.find(known));
  co_return co_await place->destroy(known);
}

Task<std::vector<places::HeldTemplate>> LeaseLifecycle::held_templates() {
  return places_.held_templates();
}

Task<bool> LeaseLifecycle::delete_held(places::HeldTemplate held) {
  const places::PlaceRef known{
      .key = held.id, .driver = core::DriverKind::sandbox, .config = {{"provider", held.provider}}};
  BERTH_CO_TRY(places::Place* const place, places_.find(known));
  BERTH_CO_TRY(places::Snapshots* const snapshots,
               need<places::Lack::template_deletion>(*place, known));
  const places::DeleteTemplate deletion{.key = held.id};
  co_return co_await snapshots->delete_template(known, deletion);
}

}  // namespace berth::engine
