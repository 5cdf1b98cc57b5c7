#pragma once

#include "core/call.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/agent_home.hpp"
#include "core/rows/environment.hpp"
#include "engine/services.hpp"
#include "engine/upkeep/home_disk.hpp"

// What agents keep between their runs: the rows, and the folders that belong to them.
namespace berth::engine {

// In the transaction that claims a run: the home that its agent has in the environment, seen from
// this server. Nothing for an agent whose program keeps no sessions.
Result<std::optional<core::AgentHomeId>> home_for(store::Session& session, Services& services,
                                                  const core::Agent& agent,
                                                  const core::Environment& environment,
                                                  const std::string& disk);
// Whether the files of a home are on the disk that its place names.
bool is_on_disk(const core::AgentHome& home, const std::string& disk);

// Removes the folders of homes that have no row any more: those of agents and environments that
// were deleted, and of homes that were reset. What a lease still works with stays.
Task<> remove_lost_homes(Services& services, const HomeDisk& disk);

struct ResetAgent {
  std::optional<core::EnvironmentId> environment_id;  // absent: in all of them
};
BOOST_DESCRIBE_STRUCT(ResetAgent, (), (environment_id))

struct AgentReset {
  core::AgentId agent_id;
  std::int64_t homes = 0;  // that were there
};
BOOST_DESCRIBE_STRUCT(AgentReset, (), (agent_id, homes))

class AgentHomes {
 public:
  // Without a disk no folder is removed here.
  AgentHomes(Services& services, const HomeDisk* disk) : services_(services), disk_(disk) {}

  // The agent begins anew: its homes and sessions are forgotten, then their folders go. `conflict`
  // while one of its runs works with them.
  Task<AgentReset> reset(core::Call call, core::AgentId agent, ResetAgent what);
  Task<std::vector<core::AgentHome>> list(core::Call call, core::AgentId agent);
  Task<> remove_lost();
  // The same from time to time, until it is cancelled.
  Task<> keep_clean(asio::any_io_executor executor);

 private:
  Services& services_;
  const HomeDisk* disk_;
};

}  // namespace berth::engine
