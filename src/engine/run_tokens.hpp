#pragma once

#include "core/access.hpp"
#include "core/run.hpp"
#include "engine/means.hpp"

namespace berth::engine {

// Tokens with which the process of an agent's run calls back: bound to the run, its agent and its
// company, and good as long as the run is not over.
class RunTokens {
 public:
  explicit RunTokens(Means& means) : means_(means) {}

  // Always the same token for the same run, so that a server that finds a run again knows what to
  // hide in its output.
  Task<Secret> make(const core::Run& run, core::AdapterType adapter);
  // `unauthenticated` for whatever is no token of ours, or of a run that is over.
  Task<core::Caller> identify(std::string token);

 private:
  Means& means_;
};

}  // namespace berth::engine
