#include "core/admission.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_policy.hpp"

#include <algorithm>
#include <set>

namespace berth::core {
namespace {

constexpr std::string_view run_limit_key = "maxConcurrentRuns";

// Identifies what a run waits for, so that positions are counted per queue.
using QueueKey = std::string;

// A double holds every JSON number; the clamp comes before the cast.
std::optional<std::int64_t> whole_number(const std::optional<double>& number) {
  if (!number) return std::nullopt;
  return static_cast<std::int64_t>(std::clamp(*number, -1.0, 1e9));
}

struct Wait {
  QueueKey key;
  WaitReason reason;
  std::string explanation;
};

std::string in_use(const RunCapacity::Use& use) {
  return std::to_string(use.running) + " of " + std::to_string(*use.limit);
}

// The session that a run goes on with, or begins for those after it; nothing where it needs none.
std::optional<SessionKey> session_key(const QueuedRun& run, const RunCapacity& capacity) {
  if (!run.agent_id || !run.environment_id || run.begins_fresh) return std::nullopt;
  const auto agent = capacity.agents.find(*run.agent_id);
  if (agent == capacity.agents.end() || !agent->second.keeps_sessions) return std::nullopt;
  return SessionKey{*run.agent_id, *run.environment_id};
}

// What this run waits for, if anything. A paused agent is reported first, because no other run's
// end helps.
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
    const std::optional<SessionKey> session = session_key(run, capacity);
    if (session && capacity.sessions.contains(*session)) {
      return Wait{session->agent_id.str() + session->environment_id.str(), WaitReason::agent_limit,
                  "Another turn of the agent works with its session in this environment; this "
                  "one starts when that has ended. A run with forceFreshSession does not wait."};
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
  const auto room = capacity.rooms.find(run.company_id);
  if (room != capacity.rooms.end()) {
    if (const auto why = why_no_room(room->second.in_use, run.share, room->second.limit)) {
      const bool can_ever = !why_no_room({}, run.share, room->second.limit);
      return Wait{run.company_id.str(), WaitReason::company_quota,
                  "The company's sandboxes have no room for another one: " + *why +
                      (can_ever ? ". It starts when others have ended"
                                : ". It starts when the quota is raised") +
                      "; 'berth company quota' changes the quota."};
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
  ++capacity.companies[run.company_id];
  capacity.rooms[run.company_id].in_use += run.share;
  if (run.agent_id) ++capacity.agents[*run.agent_id].running;
  if (run.environment_id) ++capacity.environments[*run.environment_id].running;
  if (const auto session = session_key(run, capacity)) capacity.sessions.insert(*session);
}

// The queue of each company, and which company is next. A run that waits only for the server still
// takes its turn, so that its position shows when it starts.
class Turns {
 public:
  Turns(std::span<const QueuedRun> queue, const RunCapacity& capacity) {
    for (const QueuedRun& run : queue) lines_[run.company_id].runs.push_back(&run);
    for (auto& [company, line] : lines_) {
      const auto running = capacity.companies.find(company);
      if (running != capacity.companies.end()) line.turn = running->second;
      enter(line);
    }
  }

  bool is_over() const { return next_.empty(); }
  const QueuedRun& next() const { return *next_.begin()->line->front(); }
  void pass() {
    Line& line = *next_.extract(next_.begin()).value().line;
    ++line.done;
    enter(line);
  }
  void take() {
    ++next_.begin()->line->turn;
    pass();
  }

 private:
  struct Line {
    std::vector<const QueuedRun*> runs = {};
    std::size_t done = 0;
    std::int64_t turn = 0;  // how many are running or have had their turn

    const QueuedRun* front() const { return runs[done]; }
  };
  // A snapshot from when the line entered. Runs of one span are compared by their position in it.
  struct Entry {
    std::int64_t turn;
    const QueuedRun* oldest;
    Line* line;

    bool operator<(const Entry& other) const {
      return turn != other.turn ? turn < other.turn : oldest < other.oldest;
    }
  };

  void enter(Line& line) {
    if (line.done < line.runs.size()) next_.insert({line.turn, line.front(), &line});
  }

  std::map<CompanyId, Line> lines_;
  std::set<Entry> next_;
};

}  // namespace

std::int64_t run_limit_of(const Agent& agent) {
  const auto limit = whole_number(
      peek<double>(peek<bj::object>(agent.runtime_config, "heartbeat"), run_limit_key));
  return limit ? std::clamp<std::int64_t>(*limit, 1, agent_runs_max) : agent_runs_default;
}

std::optional<std::int64_t> run_limit_of(const Environment& environment) {
  auto limit = whole_number(peek<double>(environment.config, run_limit_key));
  if (!limit) limit = whole_number(policy_in(environment).max_concurrent_runs);
  // Zero would silently block work forever, so it means no limit.
  return limit && *limit > 0 ? limit : std::nullopt;
}

bool begins_fresh(const Run& run) {
  return is_true_in(run.context_snapshot, "forceFreshSession");
}

Admission admit(std::span<const QueuedRun> queue, RunCapacity capacity) {
  Admission out;
  std::map<QueueKey, std::int64_t> waiting;
  Turns turns{queue, capacity};
  while (!turns.is_over()) {
    const QueuedRun& run = turns.next();
    std::optional<Wait> wait = wait_of(run, capacity);
    if (!wait || wait->reason == WaitReason::server_limit) {
      turns.take();
    } else {
      turns.pass();
    }
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
