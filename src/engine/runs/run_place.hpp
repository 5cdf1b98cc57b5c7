#pragma once

#include "core/access.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/company.hpp"
#include "core/rows/run.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/services.hpp"

// Where a run goes. The order of the wishes is core/placement; here they are read from the store,
// and what they name is held against what the company may use.
namespace berth::engine {

struct PlaceRequest {
  const core::Caller& who;
  const core::Company& company;
  const std::optional<core::Agent>& agent;
  const std::optional<core::EnvironmentId>& asked;
};

// In the transaction that makes the run. What an agent starts goes where the run is that it calls
// from, or to a default that an operator has set: never to Local by itself.
Result<core::ChosenEnvironment> choose_place(store::Session& session, const Services& services,
                                             const Catalog& catalog, const PlaceRequest& request);

// Whether work may be sent to an environment now: it is active, and its company may use it.
Result<> expect_open(store::Session& session, const Services& services,
                     const core::Environment& environment);

// For a run that was started from another: `forbidden` once the environment is walled off in
// another way than the place of that other run. Of every other run nothing is asked.
Result<> expect_place_of_caller(store::Session& session, const core::ChosenEnvironment& choice,
                                const core::Environment& environment);

}  // namespace berth::engine
