#include "store/runs.hpp"

#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

constexpr std::string_view run_noun = "Run";
// Spelled like the index that serves it.
constexpr std::string_view working = "status in ('starting', 'running')";

Filter conditions_of(const core::CompanyId& company, const RunFilter& filter) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("status", filter.status)
      .equal_if("agent_id", filter.agent_id)
      .equal_if("environment_id", filter.environment_id)
      .equal_if("name", filter.name);
  if (!filter.search.empty()) {
    conditions.contains({"command", "error", "id", "name"}, filter.search);
  }
  return conditions;
}

// Queued runs that are not skipped, oldest first.
struct QueueQuery {
  std::string tail;
  std::vector<Value> values;
};

template <class Id>
void pass_over(QueueQuery& query, std::string_view column, const std::vector<Id>& ids) {
  if (ids.empty()) return;
  const std::string name{column};
  query.tail += " and (" + name + " is null or " + name + " not in (";
  for (const Id& id : ids) {
    query.values.push_back(to_value(id));
    query.tail += (&id == &ids.front() ? "$" : ", $") + std::to_string(query.values.size());
  }
  query.tail += "))";
}

// Matches core::begins_fresh; the context JSON is stored without whitespace.
constexpr std::string_view is_fresh = R"(context_snapshot like '%"forceFreshSession":true%')";

void pass_over(QueueQuery& query, const std::vector<core::SessionKey>& sessions) {
  for (const core::SessionKey& key : sessions) {
    query.values.push_back(to_value(key.agent_id));
    const std::string agent = std::to_string(query.values.size());
    query.values.push_back(to_value(key.environment_id));
    const std::string environment = std::to_string(query.values.size());
    query.tail += " and (agent_id is null or environment_id is null or agent_id <> $" + agent +
                  " or environment_id <> $" + environment + " or " + std::string{is_fresh} + ")";
  }
}

QueueQuery waiting_runs(const QueueSkip& skip) {
  QueueQuery query{.tail = "status = 'queued'", .values = {}};
  pass_over(query, "agent_id", skip.agents);
  pass_over(query, "environment_id", skip.environments);
  pass_over(query, skip.sessions);
  return query;
}

QueueQuery oldest_first(const QueueSkip& skip, std::int64_t limit) {
  QueueQuery query = waiting_runs(skip);
  query.values.push_back(to_value(limit));
  query.tail = "where " + query.tail + " order by created_at, id limit $" +
               std::to_string(query.values.size());
  return query;
}

// Companies with queued runs: how many of their runs are active, and up to which time their queue
// is read.
std::string waiting_companies(std::string_view until) {
  std::string sql = "with waiting as materialized (select companies.id as of_company,";
  sql += " (select count(*) from heartbeat_runs where company_id = companies.id and ";
  sql += working;
  sql += ") as working, ";
  sql += until;
  sql +=
      " as until from companies where exists (select 1 from heartbeat_runs"
      " where company_id = companies.id and status = 'queued'))";
  return sql;
}

// Each queued run with its turn within its company. SQLite keeps the order of a cross join;
// otherwise, without statistics, it would start with the whole table.
std::string turns_of(std::string_view waiting) {
  std::string sql =
      " select id as run_id, created_at as since, working + row_number() over"
      " (partition by company_id order by created_at, id) as turn"
      " from waiting cross join heartbeat_runs"
      " where company_id = of_company and created_at <= until and ";
  sql += waiting;
  return sql;
}

constexpr std::string_view forever = "9223372036854775807";

// No company gets more places than the limit, so no more of its queue is read.
QueueQuery in_turn(const QueueSkip& skip, std::int64_t limit) {
  QueueQuery query = waiting_runs(skip);
  const std::string waiting = std::move(query.tail);
  query.values.push_back(to_value(limit - 1));
  const std::string until =
      "coalesce((select created_at from heartbeat_runs where company_id = companies.id and " +
      waiting + " order by created_at, id limit 1 offset $" + std::to_string(query.values.size()) +
      "), " + std::string{forever} + ")";
  query.values.push_back(to_value(limit));
  query.tail = "join (" + waiting_companies(until) + turns_of(waiting) +
               " order by turn, since, run_id limit $" + std::to_string(query.values.size()) +
               ") as turns on run_id = id order by turn, since, run_id";
  return query;
}

// Each agent and environment belongs to one company, so only runs that wait for the server take
// turns.
Result<std::int64_t> place_in_turn(Session& session, const core::Run& run) {
  static const std::string sql =
      "select count(*) from (" + waiting_companies(forever) + turns_of("status = 'queued'") +
      ") as turns cross join (select working + " +
      "(select count(*) from heartbeat_runs where company_id = $1 and status = 'queued'"
      " and (created_at, id) <= ($2, $3)) as own from (select count(*) as working"
      " from heartbeat_runs where company_id = $1 and " +
      std::string{working} + ") as load) as mine where (turn, since, run_id) < (own, $2, $3)";
  BERTH_TRY(const Rows found, query(session, sql, run.company_id, run.created_at, run.id));
  BERTH_TRY(const std::int64_t before,
            mapping_detail::to_integer(found.rows.at(0).at(0), "heartbeat_runs", "count"));
  return before + 1;
}

}  // namespace

std::int64_t payload_bytes(const core::Run& run) {
  std::size_t bytes = run.context_snapshot.empty() ? 0 : encode_text(run.context_snapshot).size();
  if (run.command) bytes += encode_text(*run.command).size();
  return static_cast<std::int64_t>(bytes);
}

Result<> insert_run(Session& session, const core::Run& run, std::int64_t input_bytes) {
  Result<> done = insert(session, RunRow{run, payload_bytes(run) + input_bytes});
  if (done || !violates_reference(done.error())) return done;
  return fail(Errc::environment_not_found,
              "The company, the agent or the environment of the run does not exist",
              "it was deleted while the run was being made");
}

Result<Stored<core::Run>> find_run(Session& session, const core::Reach& reach,
                                   const core::RunId& id) {
  BERTH_TRY(auto found,
            select_one<core::Run>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                  reach.sql()));
  if (found) return *std::move(found);
  return fail(Errc::run_not_found, "Heartbeat run not found", "'berth run list' shows the runs");
}

Result<Page<core::Run>> list_runs(Session& session, const core::CompanyId& company,
                                  const RunFilter& filter, const PageRequest& page) {
  return select_page(session, conditions_of(company, filter), &core::Run::created_at, page);
}

Result<Page<core::ListedRun>> brief_runs(Session& session, const core::CompanyId& company,
                                         const RunFilter& filter, const PageRequest& page) {
  return select_page(session, conditions_of(company, filter), &core::ListedRun::created_at, page);
}

// Several queries, each with its own index. An index on updated_at would have to be written with
// every step of every run.
Result<std::vector<core::ListedRun>> runs_changed_since(Session& session,
                                                        const core::CompanyId& company,
                                                        const RunFilter& filter, Time since,
                                                        std::int64_t limit) {
  std::vector<Filter> looks;
  looks.push_back(conditions_of(company, filter).at_least("created_at", since));
  looks.push_back(conditions_of(company, filter).at_least("finished_at", since));
  for (const core::RunState state : all<core::RunState>()) {
    if (core::is_final(state)) continue;
    RunFilter at_work = filter;
    at_work.status = state;
    looks.push_back(conditions_of(company, at_work).at_least("updated_at", since));
  }
  std::map<std::string, core::ListedRun> found;
  for (const Filter& look : looks) {
    BERTH_TRY(auto page,
              select_page(session, look, &core::ListedRun::created_at, {.limit = limit}));
    for (auto& row : page.rows) found.insert_or_assign(row.value.id.str(), std::move(row.value));
  }
  std::vector<core::ListedRun> newest;
  for (auto& [id, run] : found) newest.push_back(std::move(run));
  std::ranges::sort(newest, std::greater{}, [](const core::ListedRun& run) {
    return std::pair{run.created_at.ms, run.id.str()};
  });
  if (std::ssize(newest) > limit) newest.erase(newest.begin() + limit, newest.end());
  return newest;
}

Result<Stored<core::Run>> move_run(Session& session, Stored<core::Run> run, core::RunEvent event,
                                   Time now) {
  const auto next = core::advance(run.value.status, event);
  const bool ends = next && core::is_final(*next);
  run.value.updated_at = now;
  if (ends && !run.value.finished_at) run.value.finished_at = now;
  return move_row(session, std::move(run), event, run_noun);
}

Result<Stored<core::Run>> update_run(Session& session, Stored<core::Run> run, Time now) {
  run.value.updated_at = now;
  return rewrite(session, std::move(run), run_noun);
}

Result<Stored<core::Run>> request_cancel(Session& session, const core::Reach& reach,
                                         const core::RunId& id, Time now) {
  BERTH_TRY(Stored<core::Run> run, find_run(session, reach, id));
  if (core::is_final(run.value.status)) {
    return fail(Errc::conflict,
                "Run " + id.str() + " has ended: " + std::string{name_of(run.value.status)});
  }
  if (run.value.cancel_requested_at) return run;
  run.value.cancel_requested_at = now;
  return update_run(session, std::move(run), now);
}

Result<> record_output(Session& session, const core::RunId& id, const core::NodeId& node,
                       const RunOutput& output, Time now) {
  static const std::string sql =
      "update heartbeat_runs set log_bytes = $3, last_output_seq = $4, last_output_at = $5,"
      " updated_at = $6, version = version + 1 where id = $1 and node_id = $2 and " +
      std::string{working};
  BERTH_TRY(const Rows changed, query(session, sql, id, node, output.log_bytes,
                                      output.last_output_seq, output.last_output_at, now));
  if (changed.changed == 1) return {};
  return fail(Errc::conflict,
              "Run " + id.str() + " has ended, or is no longer with node " + node.str());
}

Result<bool> has_queued_run(Session& session) {
  static const std::string sql =
      "select id from heartbeat_runs where status = 'queued' order by created_at, id limit 1";
  BERTH_TRY(const Rows found, session.run(sql, {}));
  return !found.rows.empty();
}

Result<std::vector<Stored<core::Run>>> queued_runs(Session& session, const QueueSkip& skip,
                                                   std::int64_t limit) {
  const QueueQuery oldest = oldest_first(skip, limit);
  BERTH_TRY(auto all, select_bound<core::Run>(session, oldest.tail, oldest.values));
  // With fewer than `limit`, there is nothing to choose between. This is the common and fast case.
  if (all.size() < static_cast<std::size_t>(limit)) return all;
  const QueueQuery wanted = in_turn(skip, limit);
  return select_bound<core::Run>(session, wanted.tail, wanted.values);
}

Result<std::vector<Stored<core::Run>>> claim_runs(Session& session, const core::NodeId& node,
                                                  const QueueSkip& skip, std::int64_t limit,
                                                  Time now) {
  QueueQuery wanted = oldest_first(skip, limit);
  wanted.tail += session.skip_locked();
  BERTH_TRY(auto list, select_bound<core::Run>(session, wanted.tail, wanted.values));
  for (Stored<core::Run>& run : list) {
    run.value.node_id = node;
    BERTH_TRY(run, move_run(session, std::move(run), core::RunEvent::claimed, now));
  }
  return list;
}

Result<std::int64_t> queue_position(Session& session, const core::Run& run,
                                    core::WaitReason reason) {
  if (reason == core::WaitReason::server_limit) return place_in_turn(session, run);
  Filter waiting;
  waiting.also("status = 'queued'");
  switch (reason) {
    case core::WaitReason::agent_paused:
    case core::WaitReason::agent_limit: waiting.equal_if("agent_id", run.agent_id); break;
    case core::WaitReason::environment_limit:
      waiting.equal_if("environment_id", run.environment_id);
      break;
    case core::WaitReason::company_quota: waiting.equal("company_id", run.company_id); break;
    case core::WaitReason::server_limit: break;
  }
  std::vector<Value> values = waiting.values();
  values.push_back(to_value(run.created_at));
  values.push_back(to_value(run.id));
  const std::string sql = "select count(*) from heartbeat_runs where " + waiting.text() +
                          " and (created_at, id) < ($" + std::to_string(values.size() - 1) + ", $" +
                          std::to_string(values.size()) + ")";
  BERTH_TRY(const Rows found, session.run(sql, values));
  BERTH_TRY(const std::int64_t before,
            mapping_detail::to_integer(found.rows.at(0).at(0), "heartbeat_runs", "count"));
  return before + 1;
}

Result<std::vector<core::SessionKey>> working_sessions(Session& session) {
  static const std::string sql =
      "select distinct agent_id, environment_id from heartbeat_runs where " + std::string{working} +
      " and agent_id is not null and environment_id is not null and not " + std::string{is_fresh};
  BERTH_TRY(const Rows found, session.run(sql, {}));
  std::vector<core::SessionKey> list;
  const auto table = table_of<core::Run>;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(auto agent, from_value<core::AgentId>(row.at(0), table, "agent_id"));
    BERTH_TRY(auto environment,
              from_value<core::EnvironmentId>(row.at(1), table, "environment_id"));
    list.push_back({std::move(agent), std::move(environment)});
  }
  return list;
}

Result<std::vector<WorkingRuns>> count_working_runs(Session& session) {
  static const std::string sql =
      "select agent_id, environment_id, company_id, count(*) from heartbeat_runs where " +
      std::string{working} + " group by agent_id, environment_id, company_id";
  BERTH_TRY(const Rows found, session.run(sql, {}));
  std::vector<WorkingRuns> list;
  const auto table = table_of<core::Run>;
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(const auto company, from_value<core::CompanyId>(row.at(2), table, "company_id"));
    WorkingRuns counted{.company_id = company, .agent_id = {}, .environment_id = {}};
    BERTH_TRY(counted.agent_id,
              from_value<std::optional<core::AgentId>>(row.at(0), table, "agent_id"));
    BERTH_TRY(counted.environment_id,
              from_value<std::optional<core::EnvironmentId>>(row.at(1), table, "environment_id"));
    BERTH_TRY(counted.count, mapping_detail::to_integer(row.at(3), table, "count"));
    list.push_back(std::move(counted));
  }
  return list;
}

Result<std::vector<Stored<core::Run>>> runs_of_node(Session& session, const core::NodeId& node,
                                                    std::int64_t limit) {
  static const std::string tail =
      "where node_id = $1 and " + std::string{working} + " order by created_at, id limit $2";
  return select<core::Run>(session, tail, node, limit);
}

Result<std::vector<Stored<core::Run>>> orphaned_runs(Session& session, std::int64_t limit) {
  static const std::string tail =
      "where " + std::string{working} +
      " and exists (select 1 from nodes where nodes.id = heartbeat_runs.node_id"
      " and fenced_at is not null) order by node_id, heartbeat_runs.created_at,"
      " heartbeat_runs.id limit $1";
  return select<core::Run>(session, tail, limit);
}

Result<> insert_run_input(Session& session, const SealedInput& input) {
  return insert(session, input);
}

Result<std::optional<SealedInput>> find_run_input(Session& session, const core::RunId& run) {
  BERTH_TRY(auto found, select_one<SealedInput>(session, "where run_id = $1", run));
  if (!found) return std::nullopt;
  return std::move(found->value);
}

Result<std::vector<SealedInput>> inputs_not_sealed_with(Session& session, const std::string& key_id,
                                                        const std::string& after,
                                                        std::int64_t limit) {
  BERTH_TRY(auto found, select<SealedInput>(
                            session, "where key_id <> $1 and run_id > $2 order by run_id limit $3",
                            key_id, after, limit));
  return values_of(std::move(found));
}

Result<bool> reseal_run_input(Session& session, const SealedInput& resealed,
                              const std::string& old_key_id) {
  BERTH_TRY(const Rows changed,
            query(session,
                  "update heartbeat_run_inputs"
                  " set key_id = $2, material = $3, version = version + 1"
                  " where run_id = $1 and key_id = $4",
                  resealed.run_id, resealed.key_id, resealed.material, old_key_id));
  return changed.changed == 1;
}

Result<> record_redaction(Session& session, const RunRedaction& redaction) {
  const Result<Rows> done =
      query(session,
            "insert into heartbeat_run_redactions"
            " (run_id, secret_id, secret_version, hidden_by, version) values ($1, $2, $3, $4, 1)"
            " on conflict (run_id, secret_id, secret_version) do nothing",
            redaction.run_id, redaction.secret_id, redaction.secret_version, redaction.hidden_by);
  if (done) return {};
  if (violates_reference(done.error())) {
    return fail(Errc::run_not_found, "The run or the secret is gone");
  }
  return std::unexpected(done.error());
}

Result<std::vector<RunRedaction>> redactions_of_run(Session& session, const core::RunId& run) {
  BERTH_TRY(auto found, select<RunRedaction>(
                            session, "where run_id = $1 order by secret_id, secret_version", run));
  return values_of(std::move(found));
}

Result<std::vector<RunRedaction>> redactions_to_hide(Session& session, const core::NodeId& node,
                                                     std::int64_t limit) {
  static const std::string tail =
      "where (hidden_by is null or hidden_by <> $1) and run_id in"
      " (select id from heartbeat_runs where node_id = $1 and " +
      std::string{working} + ") order by run_id, secret_id, secret_version limit $2";
  BERTH_TRY(auto found, select<RunRedaction>(session, tail, node, limit));
  return values_of(std::move(found));
}

Result<> mark_hidden(Session& session, const RunRedaction& redaction, const core::NodeId& node) {
  BERTH_DO(query(session,
                 "update heartbeat_run_redactions set hidden_by = $4, version = version + 1"
                 " where run_id = $1 and secret_id = $2 and secret_version = $3",
                 redaction.run_id, redaction.secret_id, redaction.secret_version, node));
  return {};
}

}  // namespace berth::store
