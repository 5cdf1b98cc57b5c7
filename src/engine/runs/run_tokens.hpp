#pragma once

#include "core/access.hpp"
#include "core/rows/run.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// Whether a bearer token claims to be one of these: the gate asks before it chooses whom to ask.
bool is_run_token(std::string_view token);

// Tokens with which the process of an agent's run calls back: bound to the run, its agent and its
// company, and good as long as the run is not over. They are JSON Web Tokens (RFC 7519) signed with
// HMAC-SHA-256, by one key that all servers of the database share.
class RunTokens {
 public:
  explicit RunTokens(Services& services) : services_(services) {}

  // Always the same token for the same run, so that a server that finds a run again knows what to
  // hide in its output.
  Task<Secret> make(const core::Run& run, core::AdapterType adapter);
  // `unauthenticated`, and always the same, for whatever is no token of ours, has expired, or
  // belongs to a run that is over.
  Task<core::Caller> identify(std::string token);

 private:
  Task<> load_key();

  Services& services_;
  // The key is made once and never changes, only its seal does: what was read stays true.
  std::optional<Secret> key_;
};

}  // namespace berth::engine
