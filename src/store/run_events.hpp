#pragma once

#include "core/rows/run.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::RunEventRecord> = "heartbeat_run_events";

// Assigns the event's id and the run's next `seq`; given values for both are ignored. run_not_found
// when the run no longer exists.
Result<core::RunEventRecord> append_run_event(Session& session, core::RunEventRecord event);
// In order, starting after `seq` (0: from the first).
Result<std::vector<core::RunEventRecord>> run_events_after(Session& session, const core::RunId& run,
                                                           std::int64_t seq, std::int64_t limit);
Result<std::optional<core::RunEventRecord>> newest_run_event(Session& session,
                                                             const core::RunId& run);

}  // namespace berth::store
