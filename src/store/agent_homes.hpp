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

// An agent's home in an environment at a place. Inserts `wanted` if there is none. If two servers
// try at once, one gets `conflict` and must look again.
Result<core::AgentHome> find_or_insert_home(Session& session, const core::AgentHome& wanted);
Result<std::optional<core::AgentHome>> find_home(Session& session, const core::AgentHomeId& id);
Result<std::vector<core::AgentHome>> homes_of_agent(
    Session& session, const core::AgentId& agent,
    const std::optional<core::EnvironmentId>& environment);

// The session that the next turn continues; empty: it starts a new one. A home that was reset
// meanwhile remains unchanged.
struct HomeSession {
  std::optional<std::string> id = {};
  std::optional<core::AdapterType> adapter = {};
};
Result<> set_home_session(Session& session, const core::AgentHomeId& id, const HomeSession& after,
                          Time now);
Result<> set_home_size(Session& session, const core::AgentHomeId& id, std::int64_t bytes,
                       std::int64_t files, Time now);
Result<> delete_home(Session& session, const core::AgentHomeId& id);
// The lease that currently uses a home, if any.
Result<std::optional<core::LeaseId>> user_of_home(Session& session, const core::AgentHomeId& id);

}  // namespace berth::store
