#pragma once

#include "core/access.hpp"

#include <optional>
#include <string>

namespace berth::core {

// A request that may be sent again: the caller's key, and a fingerprint of method, path and body.
struct OnceKey {
  std::string key;
  std::string fingerprint;
};

// What a use case knows of the request that started it, besides the values it was given.
struct Call {
  Caller who;
  std::optional<OnceKey> once = {};             // Idempotency-Key
  std::optional<std::int64_t> if_version = {};  // If-Match: act only on this version of the object
  std::optional<RunId> run_id = {};             // the run on whose behalf somebody says to call
  std::string request_id = {};
};

}  // namespace berth::core
