#include "store/run_events.hpp"

#include "store/sql/constraint.hpp"

namespace berth::store {
namespace {

using core::RunEventRecord;

Result<std::vector<RunEventRecord>> select_events(Session& session, std::string_view tail,
                                                  std::span<const Value> parameters) {
  std::string sql = "select " + columns_of<RunEventRecord>() + " from heartbeat_run_events ";
  sql += tail;
  BERTH_TRY(const Rows found, session.run(sql, parameters));
  std::vector<RunEventRecord> list;
  list.reserve(found.rows.size());
  for (const std::vector<Value>& row : found.rows) {
    BERTH_TRY(RunEventRecord event, from_row<RunEventRecord>(row));
    list.push_back(std::move(event));
  }
  return list;
}

}  // namespace

Result<RunEventRecord> append_run_event(Session& session, RunEventRecord event) {
  // Two writers that read the same newest number cannot both commit; the database repeats one.
  constexpr std::string_view sql = R"sql(
    insert into heartbeat_run_events (company_id, run_id, agent_id, seq, event_type, stream, level,
                                      message, payload, created_at)
    values ($1, $2, $3,
            (select coalesce(max(seq), 0) + 1 from heartbeat_run_events where run_id = $2),
            $4, $5, $6, $7, $8, $9)
    returning id, seq
  )sql";
  const Result<Rows> made =
      query(session, sql, event.company_id, event.run_id, event.agent_id, event.event_type,
            event.stream, event.level, event.message, event.payload, event.created_at);
  if (!made && violates_reference(made.error())) {
    return fail(Errc::run_not_found, "Heartbeat run not found",
                "it was deleted while it was being worked on");
  }
  if (!made) return std::unexpected(made.error());
  const auto table = table_of<RunEventRecord>;
  BERTH_TRY(event.id, mapping_detail::to_integer(made->rows.at(0).at(0), table, "id"));
  BERTH_TRY(event.seq, mapping_detail::to_integer(made->rows.at(0).at(1), table, "seq"));
  return event;
}

Result<std::vector<RunEventRecord>> run_events_after(Session& session, const core::RunId& run,
                                                     std::int64_t seq, std::int64_t limit) {
  const std::vector<Value> values{to_value(run), to_value(seq), to_value(limit)};
  return select_events(session, "where run_id = $1 and seq > $2 order by seq limit $3", values);
}

Result<std::optional<RunEventRecord>> newest_run_event(Session& session, const core::RunId& run) {
  const std::vector<Value> values{to_value(run)};
  BERTH_TRY(auto list,
            select_events(session, "where run_id = $1 order by seq desc limit 1", values));
  if (list.empty()) return std::nullopt;
  return std::move(list.front());
}

}  // namespace berth::store
