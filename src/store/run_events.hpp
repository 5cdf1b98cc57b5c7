#pragma once

#include "core/rows/run.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::RunEventRecord> = "heartbeat_run_events";

// Gives the event its id and the next `seq` of its run; what it brings for both is not looked at.
// run_not_found when the run is gone.
Result<core::RunEventRecord> append_run_event(Session& session, core::RunEventRecord event);
// In order, from the one after `seq` (0: from the first).
Result<std::vector<core::RunEventRecord>> run_events_after(Session& session, const core::RunId& run,
                                                           std::int64_t seq, std::int64_t limit);
Result<std::optional<core::RunEventRecord>> newest_run_event(Session& session,
                                                             const core::RunId& run);

}  // namespace berth::store
