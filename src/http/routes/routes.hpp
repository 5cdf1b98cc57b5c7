#pragma once

#include "core/rows/wall.hpp"
#include "engine/engine.hpp"
#include "http/route.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::http {

// The server's description of itself, fixed when it starts.
struct ServerFacts {
  std::string version;
  std::string mode;
  std::string database;  // "sqlite" or "postgres"
  bool is_tls = false;
  Time started_at;
};

// One finding about the server's machine, and what to do about it.
struct Finding {
  std::string check;
  std::string verdict;  // ok, note, warn or fail
  std::string says;
  std::string remedy;
};
BOOST_DESCRIBE_STRUCT(Finding, (), (check, verdict, says, remedy))

// What the server can report about itself. Its owner outlives the routes.
struct Examination {
  // Whether the disk of the home folder has room for command output.
  std::function<bool()> keeps_output;
  std::function<std::string()> metrics;
  std::function<Task<std::vector<Finding>>()> findings;
  std::function<Task<std::vector<core::Wall>>()> walls;
};

// One table per topic. Together they are the router, the permission check, the decoder and the
// OpenAPI document.
std::vector<Route> company_routes(engine::Engine& work);
std::vector<Route> company_usage_routes(engine::Engine& work);
std::vector<Route> agent_routes(engine::Engine& work);
std::vector<Route> environment_routes(engine::Engine& work);
std::vector<Route> lease_routes(engine::Engine& work);
std::vector<Route> lease_file_routes(engine::Engine& work);
std::vector<Route> lease_port_routes(engine::Engine& work);
std::vector<Route> template_routes(engine::Engine& work);
std::vector<Route> lease_terminal_routes(engine::Engine& work);
std::vector<Route> setup_session_routes(engine::Engine& work);
std::vector<Route> run_routes(engine::Engine& work);
std::vector<Route> plugin_routes(engine::Engine& work);
std::vector<Route> secret_routes(engine::Engine& work);
std::vector<Route> token_routes(engine::Engine& work);
std::vector<Route> activity_routes(engine::Engine& work);
std::vector<Route> instance_routes(engine::Engine& work);
std::vector<Route> session_routes(engine::Engine& work, const ServerFacts& facts);
std::vector<Route> system_routes(engine::Engine& work, const ServerFacts& facts,
                                 Examination examination);

// All routes, and the document that describes them at /api/openapi.json.
std::vector<Route> all_routes(engine::Engine& work, const ServerFacts& facts,
                              Examination examination);

}  // namespace berth::http
