#include "core/rows/run.hpp"

namespace berth::core {
namespace {

void close_last(std::vector<PhaseTimes>& phases, Time now) {
  if (phases.empty() || phases.back().finished_at) return;
  // A clock that was set back must not make a phase end before it began.
  phases.back().finished_at = std::max(now, phases.back().started_at);
}

}  // namespace

ChosenEnvironment explain_choice(const Environment& environment, ChoiceReason reason) {
  const std::string name = in_quotes(environment.name);
  const auto sentence = [&]() -> std::string {
    switch (reason) {
      case ChoiceReason::run: return "The run asked for environment " + name + ".";
      case ChoiceReason::workspace: return "The workspace of the run belongs to " + name + ".";
      case ChoiceReason::agent_default: return name + " is the default of the agent.";
      case ChoiceReason::company_default:
        return name +
               " is the default of the company, and neither the run nor its agent names "
               "another.";
      case ChoiceReason::calling_run:
        return "The agent started this run from a run in " + name +
               ", and a run that an agent starts stays in the environment that it was started "
               "from.";
      case ChoiceReason::local: break;
    }
    return "Nothing names an environment, so the run stays on the server's machine, in " + name +
           ".";
  };
  return {.environment_id = environment.id, .reason = reason, .explanation = sentence()};
}

void enter_phase(std::vector<PhaseTimes>& phases, RunPhase next, Time now) {
  if (!phases.empty() && phases.back().phase == next) {
    phases.back().finished_at.reset();
    return;
  }
  close_last(phases, now);
  phases.push_back({.phase = next, .started_at = now, .finished_at = {}});
}

void end_phases(std::vector<PhaseTimes>& phases, Time now) {
  close_last(phases, now);
}

}  // namespace berth::core
