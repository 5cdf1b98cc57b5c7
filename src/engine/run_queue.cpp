#include "engine/run_queue.hpp"

#include "core/environment_config.hpp"
#include "core/linux_config.hpp"
#include "engine/node_life.hpp"
#include "engine/run_notes.hpp"
#include "engine/run_place.hpp"
#include "engine/start_from.hpp"
#include "store/agents.hpp"
#include "store/environments.hpp"
#include "store/nodes.hpp"
#include "store/runs.hpp"
#include "store/templates.hpp"

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
  return capacity;
}

// The limits of a run's agent and environment, looked up when they are first asked for.
Result<> add_limits(store::Session& session, const core::Run& run, core::RunCapacity& capacity) {
  if (run.agent_id && !capacity.agents[*run.agent_id].limit) {
    BERTH_TRY(const auto agent,
              store::find_agent(session, core::Reach::everything(), *run.agent_id));
    capacity.agents[*run.agent_id].limit = core::run_limit_of(agent.value);
    capacity.agents[*run.agent_id].is_paused = agent.value.status == core::AgentStatus::paused;
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

// A template of our own provider is on the disk of the server that captured it: while that one is
// there, it takes the runs that start from it. Whatever else is wrong is told when the run is
// taken.
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

core::QueuedRun queued(const core::Run& run) {
  return {.id = run.id,
          .company_id = run.company_id,
          .agent_id = run.agent_id,
          .environment_id = run.environment_id};
}

void take_place(const core::Run& run, core::RunCapacity& capacity) {
  ++capacity.server.running;
  ++capacity.companies[run.company_id];
  if (run.agent_id) ++capacity.agents[*run.agent_id].running;
  if (run.environment_id) ++capacity.environments[*run.environment_id].running;
}

using Elsewhere = std::map<core::EnvironmentId, bool>;

store::QueueSkip without_room(const core::RunCapacity& capacity, const Elsewhere& elsewhere) {
  store::QueueSkip skip;
  for (const auto& [id, use] : capacity.agents) {
    if (use.is_paused || use.is_full()) skip.agents.push_back(id);
  }
  for (const auto& [id, use] : capacity.environments) {
    const auto known = elsewhere.find(id);
    const bool is_elsewhere = known != elsewhere.end() && known->second;
    if (use.is_full() || is_elsewhere) skip.environments.push_back(id);
  }
  return skip;
}

Result<RunScene> fitting_scene(store::Session& session, const Means& means, const Catalog& catalog,
                               const core::Run& run) {
  if (!run.environment_id) {
    return fail(Errc::environment_not_found, "The environment of the run was deleted",
                "start the run again in another environment");
  }
  BERTH_TRY(auto row,
            store::find_environment(session, core::Reach::everything(), *run.environment_id));
  BERTH_DO(expect_open(session, means, row.value));
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

Result<std::optional<ClaimedRun>> claim(store::Session& session, Means& means,
                                        const Catalog& catalog, LeaseWork& leases,
                                        core::Stored<core::Run> run) {
  const Time now = means.clock.now();
  Result<RunScene> scene = fitting_scene(session, means, catalog, run.value);
  if (!scene) {
    run.value.error = scene.error().message;
    run.value.error_code = name_of(scene.error().code);
    core::end_phases(run.value.phases, now);
    BERTH_TRY(run, store::move_run(session, std::move(run), core::RunEvent::setup_failed, now));
    BERTH_DO(note(session, run.value,
                  {.message = *run.value.error, .level = core::EventLevel::error}, now));
    return std::nullopt;
  }
  const core::LeaseId lease_id = core::LeaseId::make(means.random, now);
  run.value.node_id = leases.node();
  run.value.lease_id = lease_id;
  core::enter_phase(run.value.phases, core::RunPhase::acquire, now);
  // Before its lease: of two servers that take the same run, the later one is told here by the
  // store, and does its work again with what the other has left.
  BERTH_TRY(run, store::move_run(session, std::move(run), core::RunEvent::claimed, now));
  BERTH_TRY(LeaseWork::Row lease,
            leases.intend(session, lease_id, *scene->environment, &run.value, {}));
  BERTH_DO(note(session, run.value, {.message = "The run leaves the queue"}, now));
  return ClaimedRun{std::move(run), std::move(lease), *std::move(scene)};
}

}  // namespace

Result<std::vector<ClaimedRun>> claim_queued(store::Session& session, Means& means,
                                             const Catalog& catalog, LeaseWork& leases,
                                             QueueLimits limits) {
  BERTH_DO(expect_alive(session, leases.node()));
  std::vector<ClaimedRun> out;
  BERTH_TRY(core::RunCapacity capacity, count(session, limits));
  store::QueueSkip skip;
  Elsewhere elsewhere;
  while (!capacity.server.is_full()) {
    BERTH_TRY(auto queue, store::queued_runs(session, skip, claim_batch));
    for (const auto& run : queue) {
      BERTH_DO(add_limits(session, run.value, capacity));
      const auto& environment = run.value.environment_id;
      if (!limits.has_peers || !environment || elsewhere.contains(*environment)) continue;
      BERTH_TRY(elsewhere[*environment], starts_elsewhere(session, *environment, leases.node()));
    }
    // Those behind a full agent or environment must not hide others that have room, nor use up the
    // turns of their company.
    store::QueueSkip full = without_room(capacity, elsewhere);
    if (full != skip) {
      skip = std::move(full);
      continue;
    }
    std::ranges::sort(
        queue, {}, [](const auto& run) { return std::pair{run.value.created_at, run.value.id}; });
    std::vector<core::QueuedRun> waiting;
    for (const auto& run : queue) waiting.push_back(queued(run.value));
    const core::Admission admission = core::admit(waiting, capacity);
    for (auto& run : queue) {
      if (std::ranges::find(admission.start, run.value.id) == admission.start.end()) continue;
      take_place(run.value, capacity);
      BERTH_TRY(auto claimed, claim(session, means, catalog, leases, std::move(run)));
      if (claimed) out.push_back(*std::move(claimed));
    }
    if (queue.size() < static_cast<std::size_t>(claim_batch)) break;
    skip = without_room(capacity, elsewhere);
  }
  return out;
}

Result<std::optional<core::QueuePlace>> place_in_queue(store::Session& session,
                                                       const core::Run& run, QueueLimits limits) {
  BERTH_TRY(core::RunCapacity capacity, count(session, limits));
  BERTH_DO(add_limits(session, run, capacity));
  const core::QueuedRun alone[] = {queued(run)};
  core::Admission admission = core::admit(alone, capacity);
  if (admission.wait.empty()) return std::nullopt;
  core::QueuePlace place = std::move(admission.wait.front().place);
  BERTH_TRY(place.position, store::queue_position(session, run, place.reason));
  return place;
}

}  // namespace berth::engine
