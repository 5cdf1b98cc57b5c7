#include "store/retention.hpp"

#include "store/sql/moving.hpp"

#include <algorithm>

namespace berth::store {
namespace {

using mapping_detail::to_integer;

constexpr std::string_view runs_table = "heartbeat_runs";

// Spelled like the index that serves it.
constexpr std::string_view bytes_of_run =
    "payload_bytes + case when log_removed_at is null then log_bytes else 0 end";

Result<std::vector<ExpiredRun>> runs_from(const Rows& found) {
  std::vector<ExpiredRun> list;
  list.reserve(found.rows.size());
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(auto id, from_value<core::RunId>(row.at(0), runs_table, "id"));
    BERTH_TRY(auto company, from_value<core::CompanyId>(row.at(1), runs_table, "company_id"));
    BERTH_TRY(const std::int64_t bytes, to_integer(row.at(2), runs_table, "bytes"));
    list.push_back({std::move(id), std::move(company), bytes});
  }
  return list;
}

// Agents' homes count like the data of their runs.
Result<std::vector<CompanyBytes>> with_homes(Session& session, std::vector<CompanyBytes> list) {
  BERTH_TRY(const Rows found,
            session.run("select company_id, sum(bytes) from agent_homes group by company_id", {}));
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(auto company, from_value<core::CompanyId>(row.at(0), "agent_homes", "company_id"));
    BERTH_TRY(const std::int64_t bytes, to_integer(row.at(1), "agent_homes", "bytes"));
    const auto known = std::ranges::find(list, company, &CompanyBytes::company_id);
    if (known != list.end()) {
      known->bytes += bytes;
    } else {
      list.push_back({std::move(company), bytes});
    }
  }
  return list;
}

}  // namespace

Result<std::vector<CompanyBytes>> stored_bytes(Session& session) {
  static const std::string sql = "select company_id, sum(" + std::string{bytes_of_run} +
                                 ") from heartbeat_runs where finished_at is not null"
                                 " group by company_id";
  BERTH_TRY(const Rows found, session.run(sql, {}));
  std::vector<CompanyBytes> list;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(auto company, from_value<core::CompanyId>(row.at(0), runs_table, "company_id"));
    BERTH_TRY(const std::int64_t bytes, to_integer(row.at(1), runs_table, "bytes"));
    list.push_back({std::move(company), bytes});
  }
  return with_homes(session, std::move(list));
}

Result<std::int64_t> run_bytes(Session& session, const core::RunId& id) {
  static const std::string sql =
      "select " + std::string{bytes_of_run} + " from heartbeat_runs where id = $1";
  BERTH_TRY(const Rows found, query(session, sql, id));
  if (found.rows.empty()) return 0;
  return to_integer(found.rows.at(0).at(0), runs_table, "bytes");
}

Result<std::int64_t> count_unfinished_runs(Session& session, const core::CompanyId& company,
                                           std::int64_t most) {
  static const std::string sql =
      "select count(*) from (select 1 from heartbeat_runs where company_id = $1 and status in (" +
      unfinished_states<core::RunState>() + ") limit $2) as unfinished";
  BERTH_TRY(const Rows found, query(session, sql, company, most));
  return to_integer(found.rows.at(0).at(0), runs_table, "count");
}

Result<std::vector<ExpiredRun>> expired_runs(Session& session, Time before, std::int64_t limit) {
  static const std::string sql =
      "select id, company_id, " + std::string{bytes_of_run} +
      " from heartbeat_runs where finished_at is not null and finished_at < $1"
      " and not exists (select 1 from heartbeat_runs as later"
      " where later.retry_of_run_id = heartbeat_runs.id)"
      " and not exists (select 1 from environment_leases"
      " where environment_leases.heartbeat_run_id = heartbeat_runs.id"
      " and environment_leases.status in (" +
      unfinished_states<core::LeaseState>() + ")) order by finished_at, id limit $2";
  BERTH_TRY(const Rows found, query(session, sql, before, limit));
  return runs_from(found);
}

Result<std::vector<ExpiredRun>> expired_logs(Session& session, Time before, std::int64_t limit) {
  constexpr std::string_view sql =
      "select id, company_id, log_bytes from heartbeat_runs where finished_at is not null"
      " and log_removed_at is null and log_bytes > 0 and finished_at < $1"
      " order by finished_at, id limit $2";
  BERTH_TRY(const Rows found, query(session, sql, before, limit));
  return runs_from(found);
}

Result<> delete_run(Session& session, const core::RunId& id) {
  static const std::string delete_sql =
      "delete from heartbeat_runs where id = $1 and finished_at is not null and not exists"
      " (select 1 from environment_leases where heartbeat_run_id = $1 and status in (" +
      unfinished_states<core::LeaseState>() + "))";
  BERTH_TRY(const Rows gone, query(session, delete_sql, id));
  if (gone.changed != 1) {
    return fail(Errc::conflict, "Run " + id.str() + " is not over, or still holds its place",
                "cancel it, wait until its lease is released, then repeat");
  }
  BERTH_DO(query(session,
                 "delete from company_secret_bindings where target_type = 'run' and target_id = $1",
                 id));
  BERTH_DO(query(session, "delete from environment_leases where heartbeat_run_id = $1", id));
  return {};
}

Result<> mark_log_removed(Session& session, const core::RunId& id, Time now) {
  BERTH_DO(query(session,
                 "update heartbeat_runs set log_removed_at = $2, version = version + 1"
                 " where id = $1 and finished_at is not null and log_removed_at is null",
                 id, now));
  return {};
}

Result<EventSweep> forget_run_events(Session& session, std::int64_t after, Time before,
                                     std::int64_t limit) {
  // Events are numbered in order of arrival, so the oldest come first. Work on an unfinished run
  // depends on its events.
  constexpr std::string_view old_sql = R"sql(
    select id, created_at from heartbeat_run_events where id > $1 order by id limit $2
  )sql";
  constexpr std::string_view delete_sql = R"sql(
    delete from heartbeat_run_events where id > $1 and id <= $2 and exists (
      select 1 from heartbeat_runs where heartbeat_runs.id = heartbeat_run_events.run_id
      and finished_at is not null)
  )sql";
  BERTH_TRY(const Rows found, query(session, old_sql, after, limit));
  EventSweep sweep{.last = after, .complete = found.rows.size() < static_cast<std::size_t>(limit)};
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(const auto at, from_value<Time>(row.at(1), "heartbeat_run_events", "created_at"));
    if (at.ms >= before.ms) {
      sweep.complete = true;
      break;
    }
    BERTH_TRY(sweep.last, to_integer(row.at(0), "heartbeat_run_events", "id"));
  }
  if (sweep.last > after) {
    BERTH_DO(query(session, delete_sql, after, sweep.last));
  }
  return sweep;
}

Result<bj::object> find_quota(Session& session, const core::CompanyId& company) {
  BERTH_TRY(const Rows found, query(session, "select quota from companies where id = $1", company));
  if (found.rows.empty()) return bj::object{};
  BERTH_TRY(auto quota,
            from_value<std::optional<bj::object>>(found.rows.at(0).at(0), "companies", "quota"));
  return quota.value_or(bj::object{});
}

Result<> save_quota(Session& session, const core::CompanyId& company, const bj::object& quota) {
  BERTH_DO(query(session, "update companies set quota = $2 where id = $1", company, quota));
  return {};
}

}  // namespace berth::store
