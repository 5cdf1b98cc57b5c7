#pragma once

#include "core/rows/agent.hpp"
#include "core/rows/agent_home.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/run.hpp"
#include "core/sandbox_share.hpp"

#include <map>
#include <set>
#include <span>

// Decides which queued runs may start now. Called whenever a run is queued or ends.
namespace berth::core {

inline constexpr std::int64_t agent_runs_default = 20;
inline constexpr std::int64_t agent_runs_max = 50;

// runtimeConfig.heartbeat.maxConcurrentRuns, clamped to 1 to 50; 20 when it is not a number.
std::int64_t run_limit_of(const Agent& agent);
// maxConcurrentRuns from the config, or from the metadata for drivers without such a field. Empty:
// no limit.
std::optional<std::int64_t> run_limit_of(const Environment& environment);

// Whether a run starts a session of its own instead of using its agent's session:
// `forceFreshSession` in its context.
bool begins_fresh(const Run& run);

// A queued run, and the resources it needs.
struct QueuedRun {
  RunId id;
  CompanyId company_id;
  std::optional<AgentId> agent_id = {};
  std::optional<EnvironmentId> environment_id = {};
  SandboxShare share = {};  // what its sandbox adds to its company's share
  bool begins_fresh = false;
};

// How many runs are active and how many may be. An agent or environment without an entry has no
// limit.
struct RunCapacity {
  struct Use {
    std::int64_t running = 0;
    std::optional<std::int64_t> limit = {};
    bool is_paused = false;
    bool keeps_sessions = false;

    bool is_full() const { return limit && running >= *limit; }
  };

  // What the sandboxes of a company may use, and how much of it is in use.
  struct Room {
    SandboxShare in_use = {};
    SandboxShare limit = {};
  };

  Use server = {};
  std::map<CompanyId, std::int64_t> companies = {};  // active runs per company; absent: none
  std::map<CompanyId, Room> rooms = {};              // absent: no limit
  std::map<AgentId, Use> agents = {};
  std::map<EnvironmentId, Use> environments = {};
  std::set<SessionKey> sessions = {};  // in use by active runs
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

// Takes a queue that is sorted by age. The next run is always the oldest one of the company with
// the fewest active runs; ties go to the older run. So a company that queues a thousand runs delays
// only itself. A run that must wait blocks only runs that wait for the same thing, and holds no
// other capacity meanwhile.
Admission admit(std::span<const QueuedRun> queue, RunCapacity capacity);

}  // namespace berth::core
