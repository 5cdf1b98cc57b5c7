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
// its next turn continues. A reset deletes the row, so the next home has a new id.
struct AgentHome {
  AgentHomeId id;
  CompanyId company_id;
  AgentId agent_id;
  EnvironmentId environment_id;
  // Where its files are: the disk of one server, or an account on a host. A run elsewhere uses
  // another home.
  std::string place;
  std::optional<std::string> session_id = {};
  std::optional<AdapterType> session_adapter = {};  // the adapter whose program owns the session
  std::int64_t bytes = 0;                           // as of the end of its last run
  std::int64_t files = 0;
  Time used_at = {};
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(AgentHome, (),
                      (id, company_id, agent_id, environment_id, place, session_id, session_adapter,
                       bytes, files, used_at, created_at, updated_at))

// An agent's session in an environment: one run at a time uses it.
struct SessionKey {
  AgentId agent_id;
  EnvironmentId environment_id;

  friend auto operator<=>(const SessionKey&, const SessionKey&) = default;
};

// The part that the agent fills, inside the server's folder for this home.
inline constexpr std::string_view home_inside = "/home";

// Whether an adapter's program keeps sessions in its home.
inline bool keeps_sessions(AdapterType adapter) {
  return adapter != AdapterType::process;
}

}  // namespace berth::core
