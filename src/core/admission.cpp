#include "core/admission.hpp"

#include <algorithm>

namespace berth::core {
namespace {

// Text that stands for what a run waits for, so that places are counted per queue.
using QueueKey = std::string;

const bj::value* find_path(const bj::object& in, std::initializer_list<std::string_view> path) {
  const bj::object* object = &in;
  const bj::value* value = nullptr;
  for (const std::string_view key : path) {
    value = object != nullptr ? object->if_contains(key) : nullptr;
    object = value != nullptr ? value->if_object() : nullptr;
  }
  return value;
}

std::optional<std::int64_t> whole_number(const bj::value* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  // Through double, which holds every number that JSON has; the clamp comes before the cast.
  return static_cast<std::int64_t>(std::clamp(value->to_number<double>(), -1.0, 1e9));
}

struct Wait {
  QueueKey key;
  WaitReason reason;
  std::string explanation;
};

std::string in_use(const RunCapacity::Use& use) {
  return std::to_string(use.running) + " of " + std::to_string(*use.limit);
}

// What this run waits for, if anything. A paused agent is told first: no end of another run helps.
std::optional<Wait> wait_of(const QueuedRun& run, const RunCapacity& capacity) {
  if (run.agent_id) {
    const auto agent = capacity.agents.find(*run.agent_id);
    if (agent != capacity.agents.end() && agent->second.is_paused) {
      return Wait{run.agent_id->str(), WaitReason::agent_paused,
                  "The agent is paused; the run starts when it is resumed."};
    }
    if (agent != capacity.agents.end() && agent->second.is_full()) {
      return Wait{run.agent_id->str(), WaitReason::agent_limit,
                  "The agent already has " + in_use(agent->second) + " runs that it may have."};
    }
  }
  if (run.environment_id) {
    const auto environment = capacity.environments.find(*run.environment_id);
    if (environment != capacity.environments.end() && environment->second.is_full()) {
      return Wait{
          run.environment_id->str(), WaitReason::environment_limit,
          "The environment already has " + in_use(environment->second) + " runs that it may have."};
    }
  }
  if (capacity.server.is_full()) {
    return Wait{"", WaitReason::server_limit,
                "The server already has " + in_use(capacity.server) + " runs that it may have."};
  }
  return std::nullopt;
}

void take_place(const QueuedRun& run, RunCapacity& capacity) {
  ++capacity.server.running;
  if (run.agent_id) ++capacity.agents[*run.agent_id].running;
  if (run.environment_id) ++capacity.environments[*run.environment_id].running;
}

}  // namespace

std::int64_t run_limit_of(const Agent& agent) {
  const auto limit =
      whole_number(find_path(agent.runtime_config, {"heartbeat", "maxConcurrentRuns"}));
  return limit ? std::clamp<std::int64_t>(*limit, 1, agent_runs_max) : agent_runs_default;
}

std::optional<std::int64_t> run_limit_of(const Environment& environment) {
  constexpr std::string_view key = "maxConcurrentRuns";
  auto limit = whole_number(environment.config.if_contains(key));
  if (!limit && environment.metadata) limit = whole_number(environment.metadata->if_contains(key));
  // Zero would park work for ever without a word; it means the same as no limit at all.
  return limit && *limit > 0 ? limit : std::nullopt;
}

Admission admit(std::span<const QueuedRun> queue, RunCapacity capacity) {
  Admission out;
  std::map<QueueKey, std::int64_t> waiting;
  for (const QueuedRun& run : queue) {
    std::optional<Wait> wait = wait_of(run, capacity);
    if (!wait) {
      take_place(run, capacity);
      out.start.push_back(run.id);
      continue;
    }
    out.wait.push_back({.id = run.id,
                        .place = {.position = ++waiting[wait->key],
                                  .reason = wait->reason,
                                  .explanation = std::move(wait->explanation)}});
  }
  return out;
}

}  // namespace berth::core
