#include "engine/runs/run_notes.hpp"

#include "store/run_events.hpp"

namespace berth::engine {

Result<> note(store::Session& session, const core::Run& run, RunNote what, Time now) {
  if (!what.payload) {
    what.payload = bj::object{{"status", name_of(run.status)}};
    if (run.exit_code) (*what.payload)["exitCode"] = *run.exit_code;
  }
  BERTH_DO(store::append_run_event(session, {.company_id = run.company_id,
                                             .run_id = run.id,
                                             .agent_id = run.agent_id,
                                             .event_type = std::move(what.type),
                                             .level = what.level,
                                             .message = std::move(what.message),
                                             .payload = std::move(what.payload),
                                             .created_at = now}));
  return {};
}

}  // namespace berth::engine
