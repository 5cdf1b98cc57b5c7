#pragma once

#include "core/access.hpp"
#include "core/rows/setup_session.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::SetupSession> = "setup_sessions";

// `conflict` while another session of the environment has not ended.
Result<> insert_setup_session(Session& session, const core::SetupSession& started);
Result<Stored<core::SetupSession>> find_setup_session(Session& session, const core::Reach& reach,
                                                      const core::SetupSessionId& id);
// The most recently started one, ended or not.
Result<std::optional<Stored<core::SetupSession>>> latest_setup_session(
    Session& session, const core::EnvironmentId& environment);

// Moves to the state that follows, due for the sweeper when the session expires. `conflict` when
// the event is not allowed, or another writer was faster.
Result<Stored<core::SetupSession>> move_setup_session(Session& session,
                                                      Stored<core::SetupSession> row,
                                                      core::SetupEvent event, Time now);
Result<Stored<core::SetupSession>> update_setup_session(Session& session,
                                                        Stored<core::SetupSession> row, Time now);
// Sessions for the sweeper: expired ones, and those that a fenced node left in the middle of a
// step.
Result<std::vector<Stored<core::SetupSession>>> due_setup_sessions(Session& session,
                                                                   const core::NodeId& node,
                                                                   Time now, std::int64_t limit);

}  // namespace berth::store
