#include "core/placement.hpp"

#include "base/strings.hpp"
#include "core/config/environment_config.hpp"

namespace berth::core {
namespace {

std::unexpected<Error> not_placed(std::string message, std::string remedy,
                                  std::map<std::string, std::vector<std::string>> facts = {}) {
  return std::unexpected(
      Error{Errc::unprocessable, std::move(message), std::move(remedy), {}, std::move(facts)});
}

std::string names_or_none(const std::vector<std::string>& names) {
  return names.empty() ? "none" : joined(names);
}

Result<> check_provider(const Environment& environment,
                        const std::vector<ProviderFacts>& providers) {
  const std::string key = provider_of(environment.config);
  if (key == "fake") {
    return not_placed(
        "Environment sandbox provider \"fake\" is not allowed here. The built-in fake provider is "
        "probe-only and cannot execute runs.",
        "select an environment with another provider");
  }
  std::vector<std::string> usable;
  for (const ProviderFacts& provider : providers) {
    if (provider.runs_work && provider.key == key) return {};
    if (provider.runs_work) usable.push_back(provider.key);
  }
  return not_placed("Environment sandbox provider \"" + key +
                        "\" is not allowed here. Allowed providers: " + names_or_none(usable),
                    "install the provider's plugin, or select another environment",
                    {{"allowedProviders", usable}});
}

}  // namespace

std::vector<DriverKind> drivers_for(AdapterType adapter) {
  switch (adapter) {
    case AdapterType::process:
    case AdapterType::claude_local:
    case AdapterType::codex_local: break;
  }
  // All our adapters build an argv, and all our drivers run one.
  return {DriverKind::local, DriverKind::ssh, DriverKind::sandbox, DriverKind::plugin};
}

Result<> check_selection(const Environment& environment, const std::vector<DriverKind>& allowed,
                         const std::vector<ProviderFacts>& providers) {
  if (environment.status == EnvironmentStatus::archived) {
    return not_placed("Environment is archived.",
                      "set its status to active, or select another one");
  }
  if (std::ranges::find(allowed, environment.driver) == allowed.end()) {
    std::vector<std::string> names;
    for (const DriverKind driver : allowed) names.emplace_back(name_of(driver));
    return not_placed("Environment driver \"" + std::string{name_of(environment.driver)} +
                          "\" is not allowed here. Allowed drivers: " + names_or_none(names),
                      "select an environment with an allowed driver", {{"allowedDrivers", names}});
  }
  if (environment.driver == DriverKind::sandbox) return check_provider(environment, providers);
  return {};
}

Result<> check_fit(AdapterType adapter, const Environment& environment,
                   const std::vector<ProviderFacts>& providers) {
  Result<> fits = check_selection(environment, drivers_for(adapter), providers);
  if (!fits) fits.error().code = Errc::unsupported_adapter_environment;
  return fits;
}

EnvironmentChoice choose_environment(const EnvironmentWishes& requests) {
  if (requests.run) return {requests.run, ChoiceReason::run};
  if (requests.workspace) return {requests.workspace, ChoiceReason::workspace};
  if (requests.agent_default) return {requests.agent_default, ChoiceReason::agent_default};
  if (requests.company_default) return {requests.company_default, ChoiceReason::company_default};
  return {};
}

Result<EnvironmentChoice> choose_for_agent(const EnvironmentWishes& requests) {
  if (requests.calling_run) {
    return EnvironmentChoice{requests.calling_run, ChoiceReason::calling_run};
  }
  const EnvironmentChoice choice = choose_environment(
      {.agent_default = requests.agent_default, .company_default = requests.company_default});
  if (choice.id) return choice;
  return fail(Errc::forbidden,
              "no operator has chosen an environment for this agent, and without one an agent "
              "cannot start itself",
              "let an operator set one: berth agent update AGENT --env ENVIRONMENT, or "
              "berth company update COMPANY --default-env ENVIRONMENT");
}

}  // namespace berth::core
