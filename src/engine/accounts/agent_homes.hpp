#pragma once

#include "core/call.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/agent_home.hpp"
#include "core/rows/environment.hpp"
#include "engine/services.hpp"
#include "engine/upkeep/home_disk.hpp"

// What agents keep between their runs: the rows, and the folders that belong to them.
namespace berth::engine {

// In the transaction that claims a run: the agent's home in the environment, as seen from this
// server. Empty for an agent whose program keeps no sessions.
Result<std::optional<core::AgentHomeId>> home_for(store::Session& session, Services& services,
                                                  const core::Agent& agent,
                                                  const core::Environment& environment,
                                                  const std::string& disk);
// Whether a home's files are on this disk.
bool is_on_disk(const core::AgentHome& home, const std::string& disk);

// Removes home folders without a row: those of deleted agents and environments, and of reset homes.
// A folder that a lease still uses remains.
Task<> remove_lost_homes(Services& services, const HomeDisk& disk);

struct ResetAgent {
  std::optional<core::EnvironmentId> environment_id;  // absent: all of them
};
BOOST_DESCRIBE_STRUCT(ResetAgent, (), (environment_id))

struct AgentReset {
  core::AgentId agent_id;
  std::int64_t homes = 0;  // how many existed
};
BOOST_DESCRIBE_STRUCT(AgentReset, (), (agent_id, homes))

class AgentHomes {
 public:
  // Without a disk, no folder is removed here.
  AgentHomes(Services& services, const HomeDisk* disk) : services_(services), disk_(disk) {}

  // Resets the agent: deletes its homes and sessions, then their folders. `conflict` while one of
  // its runs uses them.
  Task<AgentReset> reset(core::Call call, core::AgentId agent, ResetAgent what);
  Task<std::vector<core::AgentHome>> list(core::Call call, core::AgentId agent);
  Task<> remove_lost();
  // Does the same from time to time, until cancelled.
  Task<> keep_clean(asio::any_io_executor executor);

 private:
  Services& services_;
  const HomeDisk* disk_;
};

}  // namespace berth::engine
