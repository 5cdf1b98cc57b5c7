#include "engine/runs/run_queue.hpp"

#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "engine/accounts/agent_homes.hpp"
#include "engine/leases/reuse.hpp"
#include "engine/leases/sandbox_room.hpp"
#include "engine/runs/run_notes.hpp"
#include "engine/runs/run_place.hpp"
#include "engine/templates/start_from.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/agents.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/sandboxes.hpp"
#include "store/places/templates.hpp"
#include "store/runs.hpp"

#include <set>

namespace berth::engine {
namespace {

constexpr std::int64_t claim_batch = 32;

Result<core::RunCapacity> count(store::Session& session, QueueLimits limits) {
  core::RunCapacity capacity{.server = {.running = limits.running, .limit = limits.limit}};
  BERTH_TRY(const auto working, store::count_working_runs(session));
  for (const store::WorkingRuns& use : working) {
    capacity.companies[use.company_id] += use.count;
    if (use.agent_id) capacity.agents[*use.agent_id].running += use.count;
    if (use.environment_id) capacity.environments[*use.environment_id].running += use.count;
  }
  BERTH_TRY(const auto sessions, store::working_sessions(session));
  capacity.sessions.insert(sessions.begin(), sessions.end());
  return capacity;
}

// The limits of a run's agent and environment, loaded on first use.
Result<> add_limits(store::Session& session, const core::Run& run, core::RunCapacity& capacity) {
  if (run.agent_id && !capacity.agents[*run.agent_id].limit) {
    const auto agent = store::find_agent(session, core::Reach::everything(), *run.agent_id);
    // Without its agent the run fails when it is claimed, which does not concern the others.
    if (!agent && agent.error().code != Errc::agent_not_found) {
      return std::unexpected(agent.error());
    }
    core::RunCapacity::Use& use = capacity.agents[*run.agent_id];
    use.limit = agent ? core::run_limit_of(agent->value) : core::agent_runs_default;
    use.is_paused = agent && agent->value.status == core::AgentStatus::paused;
    use.keeps_sessions = agent && core::keeps_sessions(agent->value.adapter_type);
  }
  if (run.environment_id && !capacity.environments[*run.environment_id].limit) {
    auto environment =
        store::find_environment(session, core::Reach::everything(), *run.environment_id);
    if (environment) {
      capacity.environments[*run.environment_id].limit = core::run_limit_of(environment->value);
    }
  }
  return {};
}

// A template of our own provider is on the disk of the server that captured it. While that server
// is alive, it takes the runs that start from it. Any other problem is reported when the run is
// claimed.
Result<bool> starts_elsewhere(store::Session& session, const core::EnvironmentId& id,
                              const core::NodeId& here) {
  const auto environment = store::find_environment(session, core::Reach::everything(), id);
  if (!environment || core::provider_of(environment->value.config) != core::linux_provider) {
    return false;
  }
  const auto start = start_from(session, environment->value, {});
  if (!start || !start->template_id) return false;
  BERTH_TRY(const auto from,
            store::find_template(session, core::Reach::everything(), *start->template_id));
  if (!from.value.node_id || *from.value.node_id == here) return false;
  BERTH_TRY(const auto holder, store::find_node(session, *from.value.node_id));
  return holder && !holder->fenced_at;
}

void take_place(const core::QueuedRun& run, core::RunCapacity& capacity) {
  ++capacity.server.running;
  ++capacity.companies[run.company_id];
  capacity.rooms[run.company_id].in_use += run.share;
  if (run.agent_id) ++capacity.agents[*run.agent_id].running;
  if (run.environment_id) ++capacity.environments[*run.environment_id].running;
  if (run.agent_id && run.environment_id && !run.begins_fresh) {
    capacity.sessions.insert({*run.agent_id, *run.environment_id});
  }
}

using Elsewhere = std::map<core::EnvironmentId, bool>;

store::QueueSkip without_room(const core::RunCapacity& capacity, const Elsewhere& elsewhere,
                              const SandboxRooms& rooms) {
  store::QueueSkip skip;
  skip.environments = rooms.without_room(capacity);
  for (const auto& [id, use] : capacity.agents) {
    if (use.is_paused || use.is_full()) skip.agents.push_back(id);
  }
  for (const auto& [id, use] : capacity.environments) {
    const auto known = elsewhere.find(id);
    const bool is_elsewhere = known != elsewhere.end() && known->second;
    if (use.is_full() || is_elsewhere) skip.environments.push_back(id);
  }
  std::ranges::sort(skip.environments);
  const auto repeated = std::ranges::unique(skip.environments);
  skip.environments.erase(repeated.begin(), repeated.end());
  for (const core::SessionKey& key : capacity.sessions) {
    const auto agent = capacity.agents.find(key.agent_id);
    const bool is_kept = agent != capacity.agents.end() && agent->second.keeps_sessions;
    if (is_kept) skip.sessions.push_back(key);
  }
  return skip;
}

// Idle sandboxes give way to runs that find no room.
Result<> make_room(store::Session& session, const std::vector<core::Stored<core::Run>>& queue,
                   const SandboxRooms& rooms, const core::RunCapacity& capacity, Time now) {
  const std::vector<core::EnvironmentId> full = rooms.without_room(capacity);
  std::set<core::CompanyId> made;
  for (const auto& run : queue) {
    const auto& environment = run.value.environment_id;
    if (!environment || std::ranges::find(full, *environment) == full.end()) continue;
    if (!made.insert(run.value.company_id).second) continue;
    BERTH_DO(store::expire_idle_sandboxes(session, run.value.company_id, *environment, now));
  }
  return {};
}

Result<RunScene> fitting_scene(store::Session& session, const Services& services,
                               const Catalog& catalog, const core::Run& run) {
  if (!run.environment_id) {
    return fail(Errc::environment_not_found, "The environment of the run was deleted",
                "start the run again in another environment");
  }
  BERTH_TRY(auto row,
            store::find_environment(session, core::Reach::everything(), *run.environment_id));
  BERTH_DO(expect_open(session, services, row.value));
  if (run.environment_choice) {
    BERTH_DO(expect_place_of_caller(session, *run.environment_choice, row.value));
  }
  RunScene scene;
  if (run.agent_id) {
    BERTH_TRY(auto agent, store::find_agent(session, core::Reach::everything(), *run.agent_id));
    scene.agent = std::move(agent.value);
  }
  const auto adapter = scene.agent ? scene.agent->adapter_type : core::AdapterType::process;
  BERTH_DO(core::check_fit(adapter, row.value, catalog.facts()));
  scene.environment = std::move(row.value);
  return scene;
}

// Fails the run's setup, for a reason specific to this run.
Result<> fail_setup(store::Session& session, core::Stored<core::Run> run, const Error& why,
                    Time now) {
  run.value.error = why.message;
  run.value.error_code = name_of(why.code);
  core::end_phases(run.value.phases, now);
  BERTH_TRY(run, store::move_run(session, std::move(run), core::RunEvent::setup_failed, now));
  return note(session, run.value, {.message = *run.value.error, .level = core::EventLevel::error},
              now);
}

// Whether the error concerns the whole transaction and not one run in it.
bool is_of_the_store(Errc code) {
  switch (code) {
    case Errc::cancelled:
    case Errc::node_fenced:
    case Errc::store_unreachable:
    case Errc::store_locked:
    case Errc::store_read_only:
    case Errc::store_full:
    case Errc::store_corrupt:
    case Errc::store_newer:
    case Errc::store_constraint:
    case Errc::store_failed: return true;
    default: return false;
  }
}

// Why a run whose environment asks for reuse has its own sandbox.
RunNote reuse_note(const Catalog& catalog, const core::Environment& environment) {
  const std::string provider = core::provider_of(environment.config);
  if (lacks_reuse(catalog, environment.config)) {
    return {.message = "Provider \"" + provider +
                       "\" does not declare reusable leases, so this run has a sandbox of its own, "
                       "which is destroyed after it",
            .level = core::EventLevel::warn};
  }
  return {.message = "Provider \"" + provider +
                     "\" has one reusable sandbox per environment, which another run or agent "
                     "holds, so this run has a sandbox of its own"};
}

Result<std::optional<ClaimedRun>> claim(store::Session& session, Services& services,
                                        const Catalog& catalog, LeaseLifecycle& leases,
                                        core::Stored<core::Run> run, const std::string& disk) {
  const Time now = services.clock.now();
  Result<RunScene> scene = fitting_scene(session, services, catalog, run.value);
  if (!scene) {
    BERTH_DO(fail_setup(session, std::move(run), scene.error(), now));
    return std::nullopt;
  }
  const core::LeaseId lease_id = core::LeaseId::make(services.random, now);
  run.value.node_id = leases.node();
  run.value.lease_id = lease_id;
  core::enter_phase(run.value.phases, core::RunPhase::acquire, now);
  // Before its lease: if two servers take the same run, the later one gets a conflict here and
  // repeats its work with what is left.
  BERTH_TRY(run, store::move_run(session, std::move(run), core::RunEvent::claimed, now));
  LeaseLifecycle::Terms terms;
  if (scene->agent) {
    BERTH_TRY(terms.home, home_for(session, services, *scene->agent, *scene->environment, disk));
  }
  Result<LeaseLifecycle::Row> lease =
      leases.intend(session, lease_id, *scene->environment, &run.value, std::move(terms));
  // A refusal has written nothing yet, so the other runs in this transaction continue.
  if (!lease && !is_of_the_store(lease.error().code)) {
    run.value.lease_id.reset();
    BERTH_DO(fail_setup(session, std::move(run), lease.error(), now));
    return std::nullopt;
  }
  if (!lease) return std::unexpected(lease.error());
  BERTH_DO(note(session, run.value, {.message = "The run leaves the queue"}, now));
  if (is_reuse(policy_of(*scene->environment)) && !is_reuse(lease->value.lease_policy)) {
    BERTH_DO(note(session, run.value, reuse_note(catalog, *scene->environment), now));
  }
  return ClaimedRun{std::move(run), *std::move(lease), *std::move(scene)};
}

}  // namespace

Result<std::vector<ClaimedRun>> claim_queued(store::Session& session, Services& services,
                                             const Catalog& catalog, LeaseLifecycle& leases,
                                             QueueLimits limits) {
  BERTH_DO(expect_alive(session, leases.node()));
  std::vector<ClaimedRun> out;
  BERTH_TRY(core::RunCapacity capacity, count(session, limits));
  store::QueueSkip skip;
  Elsewhere elsewhere;
  SandboxRooms rooms;
  while (!capacity.server.is_full()) {
    BERTH_TRY(auto queue, store::queued_runs(session, skip, claim_batch));
    for (const auto& run : queue) {
      BERTH_DO(add_limits(session, run.value, capacity));
      BERTH_DO(rooms.look(session, run.value, capacity));
      const auto& environment = run.value.environment_id;
      if (!limits.has_peers || !environment || elsewhere.contains(*environment)) continue;
      BERTH_TRY(elsewhere[*environment], starts_elsewhere(session, *environment, leases.node()));
    }
    // Runs that wait for a full agent or environment must not hide others that have room, nor use
    // up their company's turns.
    store::QueueSkip full = without_room(capacity, elsewhere, rooms);
    if (full != skip) {
      BERTH_DO(make_room(session, queue, rooms, capacity, services.clock.now()));
      skip = std::move(full);
      continue;
    }
    std::ranges::sort(
        queue, {}, [](const auto& run) { return std::pair{run.value.created_at, run.value.id}; });
    std::vector<core::QueuedRun> waiting;
    for (const auto& run : queue) waiting.push_back(rooms.queued(run.value));
    const core::Admission admission = core::admit(waiting, capacity);
    for (std::size_t i = 0; i < queue.size(); ++i) {
      if (std::ranges::find(admission.start, waiting[i].id) == admission.start.end()) continue;
      take_place(waiting[i], capacity);
      BERTH_TRY(auto claimed,
                claim(session, services, catalog, leases, std::move(queue[i]), limits.disk));
      if (claimed) out.push_back(*std::move(claimed));
    }
    if (queue.size() < static_cast<std::size_t>(claim_batch)) break;
    skip = without_room(capacity, elsewhere, rooms);
  }
  return out;
}

Result<std::optional<core::QueuePlace>> place_in_queue(store::Session& session,
                                                       const core::Run& run, QueueLimits limits) {
  BERTH_TRY(core::RunCapacity capacity, count(session, limits));
  BERTH_DO(add_limits(session, run, capacity));
  SandboxRooms rooms;
  BERTH_DO(rooms.look(session, run, capacity));
  const core::QueuedRun alone[] = {rooms.queued(run)};
  core::Admission admission = core::admit(alone, capacity);
  if (admission.wait.empty()) return std::nullopt;
  core::QueuePlace place = std::move(admission.wait.front().place);
  BERTH_TRY(place.position, store::queue_position(session, run, place.reason));
  return place;
}

}  // namespace berth::engine
