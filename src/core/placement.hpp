#pragma once

#include "core/rows/environment.hpp"

#include <optional>
#include <vector>

// Which work fits which place, and why not. Asked when an environment is selected, when a run is
// dispatched and when it executes: by these functions each time.
namespace berth::core {

// The drivers through which an adapter can work.
std::vector<DriverKind> drivers_for(AdapterType adapter);

// What is known of a sandbox provider when a selection is checked.
struct ProviderFacts {
  std::string key;
  bool runs_work = false;  // `fake` is for probes only
};

// Whether work may be sent to this environment. Errors are `unprocessable` and carry what would
// have been allowed.
Result<> check_selection(const Environment& environment, const std::vector<DriverKind>& allowed,
                         const std::vector<ProviderFacts>& providers);
// The same for an adapter: its drivers are the allowed ones, and the code is
// unsupported_adapter_environment.
Result<> check_fit(AdapterType adapter, const Environment& environment,
                   const std::vector<ProviderFacts>& providers);

// Why a run goes where it goes.
BOOST_DEFINE_ENUM_CLASS(ChoiceReason, run, workspace, agent_default, company_default, local,
                        calling_run)

struct EnvironmentChoice {
  std::optional<EnvironmentId> id;  // absent: the Local environment of the company
  ChoiceReason reason = ChoiceReason::local;
};

struct EnvironmentWishes {
  // Of an agent that calls with the token of a run: where that run works.
  std::optional<EnvironmentId> calling_run = {};
  std::optional<EnvironmentId> run = {};
  std::optional<EnvironmentId> workspace = {};
  std::optional<EnvironmentId> agent_default = {};
  std::optional<EnvironmentId> company_default = {};
};

// The first wish that is there, in the order run, workspace, agent, company; else Local.
EnvironmentChoice choose_environment(const EnvironmentWishes& requests);
// For a run that an agent starts: the environment of the run that it calls from, else a default
// that an operator has set. `forbidden` where there is neither: no agent gets to Local by itself.
Result<EnvironmentChoice> choose_for_agent(const EnvironmentWishes& requests);

}  // namespace berth::core
