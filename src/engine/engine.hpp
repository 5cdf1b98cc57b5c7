#pragma once

#include "engine/accounts/activities.hpp"
#include "engine/accounts/agent_homes.hpp"
#include "engine/accounts/agents.hpp"
#include "engine/accounts/companies.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/accounts/tokens.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/environments/environments.hpp"
#include "engine/environments/walls.hpp"
#include "engine/leases/lease_files.hpp"
#include "engine/leases/lease_terminals.hpp"
#include "engine/leases/leases.hpp"
#include "engine/plugins/plugin_configs.hpp"
#include "engine/plugins/plugins.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/runs/run_tokens.hpp"
#include "engine/runs/runs.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/templates/setup_sessions.hpp"
#include "engine/templates/setup_terminals.hpp"
#include "engine/templates/snapshots.hpp"
#include "engine/templates/templates.hpp"
#include "engine/upkeep/node_life.hpp"
#include "engine/upkeep/sweeper.hpp"

namespace berth::engine {

// Where this server does its work. Referenced objects outlive the engine.
struct Workplace {
  const places::Registry& places;
  RunLogs& logs;
  core::Node node;
  std::set<core::NodeId> former = {};  // the home's previous nodes
  WorkOptions options = {};
  asio::any_io_executor executor;
  PluginPlace* plugins = nullptr;  // absent: a server without plugins
  HomeDisk* homes = nullptr;       // absent: a server that keeps no agent homes
};

// All use cases over one set of services. Not movable, because the parts refer to each other.
class Engine {
 public:
  Engine(Services given, const Workplace& place)
      : services(given),
        guards{.reserve = place.logs.reserve(), .quotas = Quotas{services}},
        catalog(place.places),
        plugin_configs(place.plugins),
        environments(services, catalog, plugin_configs, place.places),
        walls(services, place.plugins),
        node(services, place.node, std::chrono::milliseconds{place.options.silence_ms},
             place.executor),
        lease_lifecycle(services, place.places, secrets, catalog, place.node.id,
                        place.options.hold_ms),
        dispatcher({.services = services,
                    .leases = lease_lifecycle,
                    .logs = place.logs,
                    .secrets = secrets,
                    .tokens = run_tokens,
                    .quotas = guards.quotas,
                    .homes = place.homes,
                    .options = place.options,
                    .executor = place.executor},
                   catalog),
        sweeper(services, {lease_lifecycle, template_capture, setup_sessions}, dispatcher,
                place.executor),
        runs(services, catalog, place.logs, dispatcher, place.node.id, guards),
        plugins(services, catalog, place.plugins, place.node.id, place.former),
        homes(services, place.homes) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Whether the store responds: for load balancers that decide whether to send requests here.
  Task<> ready();

  Services services;
  Guards guards;
  Catalog catalog;
  Companies companies{services, catalog};
  Agents agents{services, catalog, homes};
  PluginConfigs plugin_configs;
  Environments environments;
  Secrets secrets{services};
  Tokens tokens{services};
  Settings settings{services};
  Walls walls;
  Activities activities{services};
  RunTokens run_tokens{services};
  NodeLife node;
  LeaseLifecycle lease_lifecycle;
  TemplateCapture template_capture{services, lease_lifecycle};
  Templates templates{services, lease_lifecycle, template_capture};
  Snapshots snapshots{services, lease_lifecycle, template_capture};
  SetupSessions setup_sessions{services, catalog, lease_lifecycle, template_capture};
  LeaseTerminals terminals{services, lease_lifecycle};
  SetupTerminals setup_terminals{services, setup_sessions, terminals};
  RunDispatcher dispatcher;
  Sweeper sweeper;
  Runs runs;
  Leases leases{services, lease_lifecycle, plugin_configs};
  LeaseFiles lease_files{services, lease_lifecycle};
  RunSecrets run_secrets{services, secrets, dispatcher, node.id(), guards.reserve};
  Plugins plugins;
  AgentHomes homes;
};

}  // namespace berth::engine
