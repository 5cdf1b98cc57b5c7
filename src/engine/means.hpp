#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "engine/feed.hpp"
#include "store/store.hpp"
#include "vault/vault.hpp"

namespace berth::engine {

// What every use case works with. Owned by the program, alive as long as it runs.
struct Means {
  store::Store& store;
  vault::Vault& vault;
  const Clock& clock;
  Random& random;
  Feed& feed;
};

}  // namespace berth::engine
