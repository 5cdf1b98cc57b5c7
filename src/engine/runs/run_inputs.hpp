#pragma once

#include "core/rows/run.hpp"
#include "engine/services.hpp"
#include "store/runs.hpp"

// A caller's input to a run, on its way to the store and back. The sealed text is bound to its run
// and does not open in another run's row.
namespace berth::engine {

// Part of the transaction that stores the input, so that no value is sealed with a key that a
// rotation is about to drop.
Result<store::SealedInput> seal_run_input(store::Session& session, Services& services,
                                          const core::RunInput& input);
Result<core::RunInput> unseal_run_input(Services& services, const store::SealedInput& sealed);

// For a master key rotation: the same input, sealed with the current key.
Result<store::SealedInput> reseal_run_input(Services& services, const store::SealedInput& sealed);

}  // namespace berth::engine
