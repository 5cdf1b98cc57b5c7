#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

struct AgentHomeTag {
  static constexpr auto noun = "agent home";
};
using AgentHomeId = Id<AgentHomeTag>;

// What an agent keeps between its runs in one environment: its home folder, and the session that
// its next turn goes on with. A reset deletes the row, so that another one has another id.
struct AgentHome {
  AgentHomeId id;
  CompanyId company_id;
  AgentId agent_id;
  EnvironmentId environment_id;
  // Where its files are: the disk of one server, or an account of a host. A run that works
  // elsewhere has another home.
  std::string place;
  std::optional<std::string> session_id = {};
  std::optional<AdapterType> session_adapter = {};  // whose program the session is of
  std::int64_t bytes = 0;                           // as they were when its last run ended
  std::int64_t files = 0;
  Time used_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(AgentHome, (),
                      (id, company_id, agent_id, environment_id, place, session_id, session_adapter,
                       bytes, files, used_at, created_at, updated_at))

// The session of an agent in an environment: one run at a time works with it.
struct SessionKey {
  AgentId agent_id;
  EnvironmentId environment_id;

  friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

// The part that the agent fills, in the folder that the server has around it.
inline constexpr std::string_view home_inside = "/home";

// Whether the program of an adapter keeps sessions in its home.
inline bool keeps_sessions(AdapterType adapter) {
  return adapter != AdapterType::process;
}

}  // namespace berth::core
