#include "store/nodes.hpp"

#include "store/sql/moving.hpp"

namespace berth::store {
namespace {

std::unexpected<Error> lost(const core::NodeId& id) {
  return fail(Errc::conflict,
              "Node " + id.str() + " was silent for too long, and others finish what it held",
              "restart the server; look for a stalled disk, database or clock");
}

template <class... P>
Result<std::vector<core::Node>> select_nodes(Session& session, std::string_view tail,
                                             const P&... parameters) {
  std::string sql = "select " + columns_of<core::Node>() + " from nodes ";
  sql += tail;
  BERTH_TRY(const Rows found, query(session, sql, parameters...));
  std::vector<core::Node> list;
  list.reserve(found.rows.size());
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(core::Node node, from_row<core::Node>(row));
    list.push_back(std::move(node));
  }
  return list;
}

}  // namespace

Result<> register_node(Session& session, const core::Node& node) {
  static const std::string sql = "insert into nodes (" + columns_of<core::Node>() + ") values (" +
                                 mapping_detail::places(count_of<core::Node>) + ")";
  const std::vector<Value> values = mapping_detail::values(node, MembersOf<core::Node>{});
  BERTH_DO(session.run(sql, values));
  return {};
}

Result<> heartbeat_node(Session& session, const core::NodeId& id, Time now) {
  BERTH_TRY(const Rows beaten,
            query(session, "update nodes set heartbeat_at = $2 where id = $1 and fenced_at is null",
                  id, now));
  if (beaten.changed != 1) return lost(id);
  return {};
}

Result<> expect_node_alive(Session& session, const core::NodeId& id) {
  BERTH_TRY(const Rows found,
            query(session, "select 1 from nodes where id = $1 and fenced_at is null", id));
  if (found.rows.empty()) return lost(id);
  return {};
}

Result<std::optional<core::Node>> find_node(Session& session, const core::NodeId& id) {
  BERTH_TRY(std::vector<core::Node> found, select_nodes(session, "where id = $1", id));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::string is_for_node(std::string_view table, std::string_view parameter) {
  const std::string holder = std::string{table} + ".node_id";
  return "(" + holder + " is null or " + holder + " = " + std::string{parameter} +
         " or not exists (select 1 from nodes where nodes.id = " + holder +
         " and fenced_at is null))";
}

Result<> inherit(Session& session, const core::NodeId& former, const core::NodeId& heir) {
  static const std::string leases =
      "update environment_leases set node_id = $2, version = version + 1 where node_id = $1 and " +
      is_unfinished<core::LeaseState>();
  static const std::string sandboxes =
      "update sandboxes set node_id = $2, version = version + 1 where node_id = $1 and " +
      is_unfinished<core::SandboxState>();
  static constexpr std::string_view templates =
      "update templates set node_id = $2, version = version + 1 where node_id = $1";
  BERTH_DO(query(session, leases, former, heir));
  BERTH_DO(query(session, sandboxes, former, heir));
  BERTH_DO(query(session, templates, former, heir));
  return {};
}

Result<std::vector<core::Node>> alive_nodes(Session& session) {
  return select_nodes(session, "where fenced_at is null order by heartbeat_at, id");
}

Result<bool> fence_node(Session& session, const core::Node& seen, Time now) {
  BERTH_TRY(const Rows fenced, query(session,
                                     "update nodes set fenced_at = $3"
                                     " where id = $1 and heartbeat_at = $2 and fenced_at is null",
                                     seen.id, seen.heartbeat_at, now));
  if (fenced.changed != 1) return false;
  // A failed teardown keeps its own retry time, whichever server attempted it.
  static const std::string leases =
      "update environment_leases set next_attempt_at = $2, version = version + 1"
      " where node_id = $1 and parked_at is null and status <> 'pending_cleanup'"
      " and " +
      is_unfinished<core::LeaseState>();
  // Other servers may now take the leases that it had claimed.
  static const std::string claims =
      "update environment_leases set claimed_by = null, claimed_until = null, version = version + 1"
      " where claimed_by = $1 and " +
      is_unfinished<core::LeaseState>();
  // A leased sandbox is found through its lease; an idle one needs no server.
  static const std::string sandboxes =
      "update sandboxes set next_attempt_at = $2, version = version + 1"
      " where node_id = $1 and parked_at is null and (lease_id is null and status = 'creating'"
      " or status = 'destroying') and " +
      is_unfinished<core::SandboxState>();
  // A step in progress is due now; rows that only wait keep waiting.
  static constexpr std::string_view templates =
      "update templates set next_attempt_at = $2, version = version + 1"
      " where node_id = $1 and status in ('capturing', 'deleting')";
  static constexpr std::string_view sessions =
      "update setup_sessions set next_attempt_at = $2, version = version + 1"
      " where node_id = $1 and status in ('starting', 'capturing')";
  BERTH_DO(query(session, templates, seen.id, now));
  BERTH_DO(query(session, sessions, seen.id, now));
  BERTH_DO(query(session, leases, seen.id, now));
  BERTH_DO(query(session, claims, seen.id));
  BERTH_DO(query(session, sandboxes, seen.id, now));
  return true;
}

Result<std::vector<core::Node>> fence_silent_nodes(Session& session, const core::NodeId& by,
                                                   Time silent_since, Time now) {
  BERTH_DO(expect_node_alive(session, by));
  BERTH_TRY(std::vector<core::Node> alive, alive_nodes(session));
  std::vector<core::Node> list;
  for (core::Node& node : alive) {
    if (node.id == by || node.heartbeat_at >= silent_since) continue;
    BERTH_TRY(const bool fenced, fence_node(session, node, now));
    if (!fenced) continue;
    node.fenced_at = now;
    list.push_back(std::move(node));
  }
  return list;
}

Result<std::int64_t> prune_nodes(Session& session, Time before, std::int64_t limit) {
  // These state lists match the partial indexes of live rows.
  static const std::string sql =
      "delete from nodes where id in (select id from nodes where fenced_at < $1"
      " and not exists (select 1 from heartbeat_runs where node_id = nodes.id"
      " and status in ('starting', 'running'))"
      " and not exists (select 1 from environment_leases where node_id = nodes.id"
      " and " +
      is_unfinished<core::LeaseState>() +
      ") and not exists (select 1 from sandboxes where node_id = nodes.id and " +
      is_unfinished<core::SandboxState>() +
      ") and not exists (select 1 from templates where node_id = nodes.id and " +
      is_unfinished<core::TemplateState>() +
      ") and not exists (select 1 from setup_sessions where node_id = nodes.id and " +
      is_unfinished<core::SetupState>() + ") order by id limit $2)";
  BERTH_TRY(const Rows gone, query(session, sql, before, limit));
  return gone.changed;
}

}  // namespace berth::store
