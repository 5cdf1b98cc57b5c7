#include "store/agents.hpp"

#include "store/sql/constraint.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

std::unexpected<Error> agent_not_found_error() {
  return fail(Errc::agent_not_found, "Agent not found", "'berth agent list' shows the agents");
}

// What the agent names may have been deleted since the caller looked.
Error explain_agent(Error error, const core::Agent& agent) {
  if (!violates_reference(error)) return error;
  return {Errc::conflict, "Agent " + agent.name + " names a company or an environment that is gone",
          "choose an environment that exists and repeat"};
}

}  // namespace

Result<> insert_agent(Session& session, const core::Agent& agent) {
  Result<> done = insert(session, agent);
  if (!done) return std::unexpected(explain_agent(std::move(done).error(), agent));
  return {};
}

Result<Page<core::Agent>> list_agents(Session& session, const core::CompanyId& company,
                                      const PageRequest& page) {
  return select_page(session, Filter{}.equal("company_id", company), &core::Agent::created_at,
                     page);
}

Result<Stored<core::Agent>> find_agent(Session& session, const core::Reach& reach,
                                       const core::AgentId& id) {
  BERTH_TRY(auto found,
            select_one<core::Agent>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                    reach.sql()));
  if (!found) return agent_not_found_error();
  return *std::move(found);
}

Result<> update_agent(Session& session, const Stored<core::Agent>& agent) {
  const Result<bool> moved = update(session, agent);
  if (!moved) return std::unexpected(explain_agent(moved.error(), agent.value));
  if (*moved) return {};
  return fail(Errc::conflict, "Agent " + agent.value.name + " changed since it was read",
              "read it again and repeat the change");
}

Result<> note_turn(Session& session, const core::AgentId& id, Time now) {
  BERTH_DO(query(session, "update agents set last_heartbeat_at = $2 where id = $1", id, now));
  return {};
}

Result<> delete_agent(Session& session, const core::AgentId& id) {
  BERTH_DO(query(session,
                 "delete from company_secret_bindings where target_type = $1 and target_id = $2",
                 core::SecretTarget::agent, id));
  // Its keys are deleted by cascade, and a missing key grants nothing.
  BERTH_TRY(const Rows gone, query(session, "delete from agents where id = $1", id));
  if (gone.changed == 0) return agent_not_found_error();
  return {};
}

}  // namespace berth::store
