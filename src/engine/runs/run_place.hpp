#pragma once

#include "core/access.hpp"
#include "core/rows/agent.hpp"
#include "core/rows/company.hpp"
#include "core/rows/run.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/services.hpp"

// Where a run goes. core/placement defines the order of preference. This code reads the candidates
// from the store and checks them against what the company may use.
namespace berth::engine {

struct PlaceRequest {
  const core::Caller& who;
  const core::Company& company;
  const std::optional<core::Agent>& agent;
  const std::optional<core::EnvironmentId>& asked;
};

// In the transaction that creates the run. A run started by an agent goes where the calling run is,
// or to a default set by an operator; never to Local on its own.
Result<core::ChosenEnvironment> choose_place(store::Session& session, const Services& services,
                                             const Catalog& catalog, const PlaceRequest& request);

// Whether work may be sent to an environment now: it is active, and its company may use it.
Result<> expect_open(store::Session& session, const Services& services,
                     const core::Environment& environment);

// For a run started from another: `forbidden` if the environment is no longer isolated like the
// place of that other run. Other runs are not checked.
Result<> expect_place_of_caller(store::Session& session, const core::ChosenEnvironment& choice,
                                const core::Environment& environment);

}  // namespace berth::engine
