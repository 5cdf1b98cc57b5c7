#pragma once

#include "core/access.hpp"
#include "core/rows/run.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// Whether a bearer token looks like a run token: the gate uses this to choose the verifier.
bool is_run_token(std::string_view token);

// Tokens with which an agent's run process calls back: bound to the run, its agent and its company,
// and valid until the run ends. They are JSON Web Tokens (RFC 7519) signed with HMAC-SHA-256, with
// one key that all servers of the database share.
class RunTokens {
 public:
  explicit RunTokens(Services& services) : services_(services) {}

  // Always the same token for the same run, so that a server that takes over a run knows what to
  // hide in its output.
  Task<Secret> make(const core::Run& run, core::AdapterType adapter);
  // The same `unauthenticated` error for anything that is not our token, has expired, or belongs to
  // an ended run.
  Task<core::Caller> identify(std::string token);

 private:
  Task<> load_key();

  Services& services_;
  // The key is created once and never changes, only its seal does, so a cached key remains valid.
  std::optional<Secret> key_;
};

}  // namespace berth::engine
