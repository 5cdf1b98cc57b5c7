#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "core/allowances.hpp"
#include "engine/feed.hpp"
#include "store/store.hpp"
#include "vault/vault.hpp"

namespace berth::engine {

// What every use case works with. Owned by the program for its whole lifetime.
struct Services {
  store::Store& store;
  vault::Vault& vault;
  const Clock& clock;
  Random& random;
  Feed& feed;
  // What companies may use of this machine if no administrator has decided.
  core::Allowances allowed_by_default = {};
};

}  // namespace berth::engine
