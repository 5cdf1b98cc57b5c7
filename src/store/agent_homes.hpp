#pragma once

#include "core/access.hpp"
#include "core/rows/agent_home.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::AgentHome> = "agent_homes";
template <>
inline constexpr std::string_view fixed_columns_of<core::AgentHome> =
    "company_id agent_id environment_id place created_at";

// The home of an agent in an environment at a place. A new row with this one's id where there is
// none: of two servers that try, one is told `conflict` by the store and looks again.
Result<core::AgentHome> find_or_insert_home(Session& session, const core::AgentHome& wanted);
Result<std::optional<core::AgentHome>> find_home(Session& session, const core::AgentHomeId& id);
Result<std::vector<core::AgentHome>> homes_of_agent(
    Session& session, const core::AgentId& agent,
    const std::optional<core::EnvironmentId>& environment);

// The session that the next turn goes on with; nothing: it begins a new one. A home that was reset
// meanwhile is left as it is.
struct HomeSession {
  std::optional<std::string> id = {};
  std::optional<core::AdapterType> adapter = {};
};
Result<> set_home_session(Session& session, const core::AgentHomeId& id, const HomeSession& after,
                          Time now);
Result<> set_home_size(Session& session, const core::AgentHomeId& id, std::int64_t bytes,
                       std::int64_t files, Time now);
Result<> delete_home(Session& session, const core::AgentHomeId& id);
// The lease that a home is used with now, if there is one.
Result<std::optional<core::LeaseId>> user_of_home(Session& session, const core::AgentHomeId& id);

}  // namespace berth::store
