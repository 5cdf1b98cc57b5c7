// What the end of a command means for its run.
#include "base/json/peek.hpp"
#include "core/config/sandbox_fields.hpp"
#include "engine/runs/run_job.hpp"

namespace berth::engine {

using core::RunEvent;

Error RunJob::timeout_error(const std::optional<Error>& said) const {
  const auto own = run_.value.command ? run_.value.command->timeout_ms : std::nullopt;
  const auto config =
      place_ ? read_loosely<core::SandboxFields>(place_->config).timeout_ms : std::nullopt;
  // The shorter limit applies, so a longer one of the run would not help. Only in the sandbox of a
  // plugin does a run's own limit replace that of the config.
  const bool replaces = lease_.value.teardown.plugin_id && own;
  const bool is_environments = config && (replaces ? *config == *own : !own || *config <= *own);
  const std::int64_t limit = is_environments ? *config : own.value_or(0);
  Error error{Errc::timed_out, "Timed out after " + std::to_string(limit) + " ms",
              is_environments ? "raise timeoutMs in the config of the environment"
                              : "give the run a longer timeout"};
  if (!said) return with_denials(std::move(error));
  error.message += ". Last words of the agent: " + said->message;
  if (!said->remedy.empty()) error.remedy = said->remedy;
  return error;
}

RunJob::End RunJob::outcome_of(const places::Ended& ended) const {
  End end{.event = RunEvent::exited_nonzero, .command = ended};
  // A shell whose child was killed for lack of memory ends with an exit code, not with a signal.
  const bool starved = ended.oom_kills > 0 && ended.exit_code != 0 && !cancelled_;
  const auto failed = [&](Errc code, std::string message, std::string remedy = {}) {
    end.error = Error{code, std::move(message), std::move(remedy)};
  };
  const std::optional<Error> said = agent_failure();
  // A cause with its own code replaces the whole message; other text is appended to how the process
  // ended.
  const auto fail_with_words = [&](const std::string& how) {
    if (said && said->code != Errc::command_failed) {
      end.error = *said;
    } else {
      failed(Errc::command_failed, said ? how + ": " + said->message : how);
      end.error = with_denials(*std::move(end.error));
    }
  };
  switch (ended.outcome) {
    case places::Outcome::exited:
      if (cancelled_ && ended.exit_code != 0) {
        end.event = RunEvent::cancelled;
      } else if (ended.exit_code != 0) {
        fail_with_words("Process exited with code " + std::to_string(ended.exit_code.value_or(0)));
      } else if (output_ && output_->agent_outcome().error) {
        end.error = agent_failure();
      } else {
        end.event = RunEvent::exited_zero;
      }
      break;
    case places::Outcome::signaled:
      if (cancelled_) {
        end.event = RunEvent::cancelled;
      } else {
        fail_with_words("Process was ended by " + ended.signal.value_or("a signal"));
      }
      break;
    case places::Outcome::timed_out:
      end.event = RunEvent::deadline_passed;
      end.error = timeout_error(said);
      break;
    case places::Outcome::stopped:
      end.event = cancelled_ ? RunEvent::cancelled : RunEvent::interrupted;
      if (!cancelled_) failed(Errc::process_lost, "The command was stopped from outside");
      break;
    case places::Outcome::lapsed:
      end.event = RunEvent::interrupted;
      failed(Errc::lease_lapsed, "No server renewed the lease in time, so the command was ended",
             "start the run again; a longer hold time survives longer outages");
      break;
    case places::Outcome::lost:
      end.event = cancelled_ ? RunEvent::cancelled : RunEvent::interrupted;
      failed(Errc::process_lost,
             "The process that watched the command was killed, and the command with it",
             "start the run again");
      break;
  }
  if (end.event == RunEvent::cancelled) end.error = cancelled().error;
  if (starved && end.event == RunEvent::exited_nonzero) {
    failed(Errc::out_of_memory, "The sandbox ran out of its memory, and the kernel ended processes",
           "raise memoryMb in the config of the environment");
  }
  return end;
}

}  // namespace berth::engine
