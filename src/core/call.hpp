#pragma once

#include "core/access.hpp"

#include <optional>
#include <string>

namespace berth::core {

// A request that may be retried: the caller's key, and a fingerprint of method, path and body.
struct OnceKey {
  std::string key;
  std::string fingerprint;
};

// The request context of a use case, besides its arguments.
struct Call {
  Caller who;
  std::optional<OnceKey> once = {};             // Idempotency-Key
  std::optional<std::int64_t> if_version = {};  // If-Match: act only on this version of the object
  std::optional<RunId> run_id = {};             // the run that the caller claims to act for
  std::string request_id = {};
};

}  // namespace berth::core
