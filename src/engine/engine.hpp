#pragma once

#include "engine/activities.hpp"
#include "engine/agents.hpp"
#include "engine/catalog.hpp"
#include "engine/companies.hpp"
#include "engine/environments.hpp"
#include "engine/secrets.hpp"
#include "engine/settings.hpp"
#include "engine/tokens.hpp"

namespace berth::engine {

// All use cases over one set of means. Pinned: the parts refer to each other.
class Engine {
 public:
  explicit Engine(Means means_given) : means(means_given) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether the store answers: asked by whoever decides to send requests here.
  Task<> ready();

  Means means;
  Catalog catalog;
  Companies companies{means, catalog};
  Agents agents{means, catalog};
  Environments environments{means, catalog};
  Secrets secrets{means};
  Tokens tokens{means};
  Settings settings{means};
  Activities activities{means};
};

}  // namespace berth::engine
