#include "engine/runs/run_place.hpp"

#include "engine/environments/allowed_places.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/templates/start_from.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

constexpr auto start_it_yourself = "let an operator start the agent";

Result<core::EnvironmentId> place_of(store::Session& session, const core::RunId& id,
                                     const core::CompanyId& company) {
  BERTH_TRY(const auto row, store::find_run(session, core::Reach::only(company), id));
  if (row.value.environment_id) return *row.value.environment_id;
  return fail(Errc::forbidden,
              "the environment of run " + id.str() +
                  " was deleted, and a run that an agent starts goes to no other",
              start_it_yourself);
}

Result<core::EnvironmentChoice> choice_for(store::Session& session, const PlaceRequest& request) {
  core::EnvironmentWishes requests{.run = request.asked,
                                   .company_default = request.company.default_environment_id};
  if (request.agent) requests.agent_default = request.agent->default_environment_id;
  if (request.who.kind != core::CallerKind::agent_key) return core::choose_environment(requests);
  if (request.who.run_id) {
    BERTH_TRY(requests.calling_run, place_of(session, *request.who.run_id, request.company.id));
  }
  return core::choose_for_agent(requests);
}

Result<core::Stored<core::Environment>> chosen(store::Session& session,
                                               const core::CompanyId& company,
                                               const core::EnvironmentChoice& choice) {
  if (choice.id) return store::find_environment(session, core::Reach::only(company), *choice.id);
  BERTH_TRY(auto local, store::find_local_environment(session, company));
  if (local) return *std::move(local);
  return fail(Errc::environment_not_found, "The company has no Local environment",
              "name an environment for the run");
}

}  // namespace

Result<> expect_open(store::Session& session, const Services& services,
                     const core::Environment& environment) {
  if (environment.status != core::EnvironmentStatus::active) {
    return fail(Errc::environment_inactive,
                "Environment \"" + environment.name +
                    "\" is not active (status: " + std::string{name_of(environment.status)} + ").",
                "set its status to active, or choose another environment");
  }
  return expect_allowed(session, services, environment);
}

Result<> expect_place_of_caller(store::Session& session, const core::ChosenEnvironment& choice,
                                const core::Environment& environment) {
  if (!choice.calling_run_id) return {};
  const core::RunId& id = *choice.calling_run_id;
  BERTH_TRY(const auto caller,
            store::find_run(session, core::Reach::only(environment.company_id), id));
  if (caller.value.lease_id) {
    BERTH_TRY(const auto lease,
              store::find_lease_record(session, core::Reach::everything(), *caller.value.lease_id));
    BERTH_TRY(StartFrom start, start_from(session, environment, {}));
    BERTH_TRY(const bj::object config,
              spelled_out(session, environment.id, std::move(start.config)));
    const bool is_same = core::has_same_walls(lease.value.driver, lease.value.teardown.config,
                                              environment.driver, config);
    if (is_same) return {};
  }
  return fail(Errc::forbidden,
              "environment " + in_quotes(environment.name) + " has changed since run " + id.str() +
                  " began in it, and a run that an agent starts gets no other walls",
              start_it_yourself);
}

Result<core::ChosenEnvironment> choose_place(store::Session& session, const Services& services,
                                             const Catalog& catalog, const PlaceRequest& request) {
  BERTH_TRY(const core::EnvironmentChoice choice, choice_for(session, request));
  BERTH_TRY(const auto environment, chosen(session, request.company.id, choice));
  BERTH_DO(expect_open(session, services, environment.value));
  const auto adapter = request.agent ? request.agent->adapter_type : core::AdapterType::process;
  BERTH_DO(core::check_fit(adapter, environment.value, catalog.facts()));
  core::ChosenEnvironment out = core::explain_choice(environment.value, choice.reason);
  if (choice.reason == core::ChoiceReason::calling_run) out.calling_run_id = request.who.run_id;
  BERTH_DO(expect_place_of_caller(session, out, environment.value));
  return out;
}

}  // namespace berth::engine
