#include "store/agent_homes.hpp"

#include "core/rows/lease.hpp"
#include "store/sql/moving.hpp"

namespace berth::store {

Result<core::AgentHome> find_or_insert_home(Session& session, const core::AgentHome& wanted) {
  BERTH_TRY(auto found, select_one<core::AgentHome>(
                            session, "where agent_id = $1 and environment_id = $2 and place = $3",
                            wanted.agent_id, wanted.environment_id, wanted.place));
  if (found) return std::move(found->value);
  BERTH_DO(insert(session, wanted));
  return wanted;
}

Result<std::optional<core::AgentHome>> find_home(Session& session, const core::AgentHomeId& id) {
  BERTH_TRY(auto found, select_one<core::AgentHome>(session, "where id = $1", id));
  if (!found) return std::nullopt;
  return std::optional{std::move(found->value)};
}

Result<std::vector<core::AgentHome>> homes_of_agent(
    Session& session, const core::AgentId& agent,
    const std::optional<core::EnvironmentId>& environment) {
  BERTH_TRY(auto found,
            select<core::AgentHome>(
                session, "where agent_id = $1 and ($2 = '' or environment_id = $2) order by id",
                agent, environment ? environment->str() : std::string{}));
  std::vector<core::AgentHome> list;
  for (auto& row : found) list.push_back(std::move(row.value));
  return list;
}

Result<> set_home_session(Session& session, const core::AgentHomeId& id, const HomeSession& after,
                          Time now) {
  BERTH_DO(query(session,
                 "update agent_homes set session_id = $2, session_adapter = $3, used_at = $4,"
                 " updated_at = $4, version = version + 1 where id = $1",
                 id, after.id, after.adapter, now));
  return {};
}

Result<> set_home_size(Session& session, const core::AgentHomeId& id, std::int64_t bytes,
                       std::int64_t files, Time now) {
  BERTH_DO(query(session,
                 "update agent_homes set bytes = $2, files = $3, used_at = $4, updated_at = $4,"
                 " version = version + 1 where id = $1",
                 id, bytes, files, now));
  return {};
}

Result<> delete_home(Session& session, const core::AgentHomeId& id) {
  BERTH_DO(query(session, "delete from agent_homes where id = $1", id));
  return {};
}

Result<std::optional<core::LeaseId>> user_of_home(Session& session, const core::AgentHomeId& id) {
  // The home id is inside the teardown JSON of the lease. Unfinished leases are few, so a scan is
  // cheap.
  static const std::string sql = "select id from environment_leases where status in (" +
                                 unfinished_states<core::LeaseState>() +
                                 ") and teardown like $1 limit 1";
  BERTH_TRY(const Rows found, query(session, sql, "%" + id.str() + "%"));
  if (found.rows.empty()) return std::nullopt;
  BERTH_TRY(auto lease, from_value<core::LeaseId>(found.rows.at(0).at(0), "leases", "id"));
  return std::optional{std::move(lease)};
}

}  // namespace berth::store
