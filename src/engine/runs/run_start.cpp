// Records in the store that a run's command is running.
#include "base/fault_point.hpp"
#include "engine/retry.hpp"
#include "engine/runs/run_job.hpp"
#include "engine/runs/run_notes.hpp"
#include "store/agents.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

constexpr std::chrono::milliseconds short_command{10};

}  // namespace

Result<core::Stored<core::Run>> RunJob::record_start(store::Session& session,
                                                     core::Stored<core::Run> run) const {
  const Time now = tools_.services.clock.now();
  core::Run& value = run.value;
  value.command = start_->shown;
  value.session_id_before = start_->resumed_session;
  value.process_pid = start_->command.pid;
  value.process_group_id = start_->command.pid;
  value.process_started_at = start_->command.started_at;
  value.started_at = start_->command.started_at;
  core::enter_phase(value.phases, core::RunPhase::execute, start_->noticed_at);
  BERTH_TRY(run, store::move_run(session, std::move(run), core::RunEvent::started, now));
  BERTH_DO(note(session, run.value, {.message = "The command runs"}, now));
  BERTH_DO(note(session, run.value,
                {.type = "adapter.invoke",
                 .message = "Started " + start_->shown.argv.front(),
                 .payload = start_->invocation},
                now));
  for (const std::string& warning : start_->warnings) {
    BERTH_DO(note(session, run.value, {.message = warning, .level = core::EventLevel::warn}, now));
  }
  if (value.agent_id) BERTH_DO(store::note_turn(session, *value.agent_id, now));
  return run;
}

Task<> RunJob::record_start_soon() {
  // An agent's process may request things that only a running run gets.
  if (!agent_) BERTH_CO_DO(co_await pause_for(tools_.executor, short_command));
  const auto save = [this](store::Session& s) -> Result<core::Stored<core::Run>> {
    BERTH_TRY(auto run, our_run(s));
    // An attempt whose response was lost may have done it.
    if (run.value.status != core::RunState::starting) return run;
    return record_start(s, std::move(run));
  };
  const auto attempt = [&] { return tools_.services.store.write(save); };
  BERTH_CO_TRY(run_, co_await retry_during_outage(tools_.executor, attempt));
  tools_.services.feed.changed(id_);
  fault_point("execute.recorded");
  co_return Result<>{};
}

}  // namespace berth::engine
