#include "store/places/setup_sessions.hpp"

#include "store/nodes.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"

namespace berth::store {
namespace {

using core::SetupSession;
using core::SetupState;

constexpr std::string_view setup_noun = "Setup session";

Error explain_session(Error error) {
  if (violates(error, "setup_sessions_environment_id")) {
    return {Errc::conflict,
            "An environment customImage setup session is already active for this environment.",
            "finish or cancel it first"};
  }
  if (violates_reference(error)) return {Errc::environment_not_found, "Environment not found"};
  return error;
}

}  // namespace

Result<> insert_setup_session(Session& session, const SetupSession& started) {
  Result<> done = insert(session, started);
  if (!done) return std::unexpected(explain_session(std::move(done).error()));
  return {};
}

Result<Stored<SetupSession>> find_setup_session(Session& session, const core::Reach& reach,
                                                const core::SetupSessionId& id) {
  BERTH_TRY(auto found,
            select_one<SetupSession>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                     reach.sql()));
  if (found) return *std::move(found);
  return fail(Errc::setup_session_not_found, "Environment customImage setup session not found");
}

Result<std::optional<Stored<SetupSession>>> latest_setup_session(
    Session& session, const core::EnvironmentId& environment) {
  return select_one<SetupSession>(
      session, "where environment_id = $1 order by created_at desc, id desc limit 1", environment);
}

Result<Stored<SetupSession>> move_setup_session(Session& session, Stored<SetupSession> row,
                                                core::SetupEvent event, Time now) {
  SetupSession& value = row.value;
  const auto next = core::advance(value.status, event);
  if (next && core::is_final(*next)) {
    value.finished_at = now;
    value.next_attempt_at.reset();
  } else if (next && *next == SetupState::waiting_for_user) {
    value.next_attempt_at = value.expires_at;
  }
  value.updated_at = now;
  return move_row(session, std::move(row), event, setup_noun);
}

Result<Stored<SetupSession>> update_setup_session(Session& session, Stored<SetupSession> row,
                                                  Time now) {
  row.value.updated_at = now;
  return rewrite(session, std::move(row), setup_noun);
}

Result<std::vector<Stored<SetupSession>>> due_setup_sessions(Session& session,
                                                             const core::NodeId& node, Time now,
                                                             std::int64_t limit) {
  static const std::string tail =
      "where status in (" + unfinished_states<SetupState>() + ") and next_attempt_at <= $1 and " +
      is_for_node("setup_sessions", "$2") + " order by next_attempt_at, id limit $3";
  return select<SetupSession>(session, tail, now, node, limit);
}

}  // namespace berth::store
