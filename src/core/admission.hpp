#pragma once

#include "core/rows/agent.hpp"
#include "core/rows/agent_home.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/run.hpp"
#include "core/sandbox_share.hpp"

#include <map>
#include <set>
#include <span>

// Which queued runs may start now. Asked whenever a run is queued or ends.
namespace berth::core {

inline constexpr std::int64_t agent_runs_default = 20;
inline constexpr std::int64_t agent_runs_max = 50;

// runtimeConfig.heartbeat.maxConcurrentRuns, brought into 1 to 50; 20 when it is no number.
std::int64_t run_limit_of(const Agent& agent);
// maxConcurrentRuns of the config or, for drivers that know no such field, of the metadata.
// Nothing: no limit.
std::optional<std::int64_t> run_limit_of(const Environment& environment);

// Whether a run begins a session of its own, beside that which its agent has:
// `forceFreshSession` of its context.
bool begins_fresh(const Run& run);

// A queued run, and what it needs a place in.
struct QueuedRun {
  RunId id;
  CompanyId company_id;
  std::optional<AgentId> agent_id = {};
  std::optional<EnvironmentId> environment_id = {};
  SandboxShare share = {};  // what its sandbox adds to those of its company
  bool begins_fresh = false;
};

// How many run now and how many may. An agent or environment without an entry has no limit.
struct RunCapacity {
  struct Use {
    std::int64_t running = 0;
    std::optional<std::int64_t> limit = {};
    bool is_paused = false;
    bool keeps_sessions = false;

    bool is_full() const { return limit && running >= *limit; }
  };

  // What the sandboxes of a company may take, and how much of it is taken.
  struct Room {
    SandboxShare in_use = {};
    SandboxShare limit = {};
  };

  Use server = {};
  std::map<CompanyId, std::int64_t> companies = {};  // how many run for each; absent: none
  std::map<CompanyId, Room> rooms = {};              // absent: without a limit
  std::map<AgentId, Use> agents = {};
  std::map<EnvironmentId, Use> environments = {};
  std::set<SessionKey> sessions = {};  // that runs work with now
};

struct WaitingRun {
  RunId id;
  QueuePlace place;

  friend bool operator==(const WaitingRun&, const WaitingRun&) = default;
};

struct Admission {
  std::vector<RunId> start;
  std::vector<WaitingRun> wait;
};

// Takes a queue that is sorted by age. Next is always the oldest run of the company that has the
// fewest running, and of two such runs the older one: a company that queues a thousand runs makes
// itself wait, not the others. A run that must wait holds up only those that wait for the same
// thing, and takes no place of what it has.
Admission admit(std::span<const QueuedRun> queue, RunCapacity capacity);

}  // namespace berth::core
