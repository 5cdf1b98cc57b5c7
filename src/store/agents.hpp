#pragma once

#include "core/access.hpp"
#include "core/rows/agent.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Agent> = "agents";

Result<> insert_agent(Session& session, const core::Agent& agent);
// Ordered by (created_at, id) descending.
Result<Page<core::Agent>> list_agents(Session& session, const core::CompanyId& company,
                                      const PageRequest& page);
Result<Stored<core::Agent>> find_agent(Session& session, const core::Reach& reach,
                                       const core::AgentId& id);
Result<> update_agent(Session& session, const Stored<core::Agent>& agent);
// Records when its last turn began. The version does not change, so readers need not reload.
Result<> note_turn(Session& session, const core::AgentId& id, Time now);
// Also revokes the agent's keys and removes the bindings of its secrets.
Result<> delete_agent(Session& session, const core::AgentId& id);

}  // namespace berth::store
