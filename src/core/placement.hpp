#pragma once

#include "core/rows/environment.hpp"

#include <optional>
#include <vector>

// Which work can run in which environment, and why not. The same functions decide when an
// environment is selected, when a run is dispatched and when it executes.
namespace berth::core {

// The drivers that an adapter can use.
std::vector<DriverKind> drivers_for(AdapterType adapter);

// What is known about a sandbox provider when a selection is checked.
struct ProviderFacts {
  std::string key;
  bool runs_work = false;  // false for `fake`, which is for probes only
};

// Whether work may be sent to this environment. Errors are `unprocessable` and list what would have
// been allowed.
Result<> check_selection(const Environment& environment, const std::vector<DriverKind>& allowed,
                         const std::vector<ProviderFacts>& providers);
// The same for an adapter: its drivers are the allowed ones, and the code is
// unsupported_adapter_environment.
Result<> check_fit(AdapterType adapter, const Environment& environment,
                   const std::vector<ProviderFacts>& providers);

// Why a run was placed in its environment.
BOOST_DEFINE_ENUM_CLASS(ChoiceReason, run, workspace, agent_default, company_default, local,
                        calling_run)

struct EnvironmentChoice {
  std::optional<EnvironmentId> id;  // absent: the company's Local environment
  ChoiceReason reason = ChoiceReason::local;
};

struct EnvironmentWishes {
  // For an agent that calls with a run token: the environment of that run.
  std::optional<EnvironmentId> calling_run = {};
  std::optional<EnvironmentId> run = {};
  std::optional<EnvironmentId> workspace = {};
  std::optional<EnvironmentId> agent_default = {};
  std::optional<EnvironmentId> company_default = {};
};

// The first one given, in the order run, workspace, agent, company; otherwise Local.
EnvironmentChoice choose_environment(const EnvironmentWishes& requests);
// For a run that an agent starts: the environment of the calling run, or a default set by an
// operator. `forbidden` if there is neither, because an agent may not choose Local itself.
Result<EnvironmentChoice> choose_for_agent(const EnvironmentWishes& requests);

}  // namespace berth::core
