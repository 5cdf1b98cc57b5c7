#pragma once

#include "engine/engine.hpp"
#include "http/route.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::http {

// What the server says of itself, fixed when it starts.
struct ServerFacts {
  std::string version;
  std::string mode;
  std::string database;  // "sqlite" or "postgres"
  Time started_at;
};

// One table per topic; together they are the router, the permission check, the decoder and the
// OpenAPI document.
std::vector<Route> company_routes(engine::Engine& work);
std::vector<Route> agent_routes(engine::Engine& work);
std::vector<Route> environment_routes(engine::Engine& work);
std::vector<Route> lease_routes(engine::Engine& work);
std::vector<Route> lease_file_routes(engine::Engine& work);
std::vector<Route> lease_port_routes(engine::Engine& work);
std::vector<Route> template_routes(engine::Engine& work);
std::vector<Route> setup_session_routes(engine::Engine& work);
std::vector<Route> run_routes(engine::Engine& work);
std::vector<Route> plugin_routes(engine::Engine& work);
std::vector<Route> secret_routes(engine::Engine& work);
std::vector<Route> token_routes(engine::Engine& work);
std::vector<Route> activity_routes(engine::Engine& work);
std::vector<Route> instance_routes(engine::Engine& work);
std::vector<Route> system_routes(engine::Engine& work, const ServerFacts& facts,
                                 std::function<std::string()> metrics);

// All of them, and the document that describes them at /api/openapi.json.
std::vector<Route> all_routes(engine::Engine& work, const ServerFacts& facts,
                              std::function<std::string()> metrics);

}  // namespace berth::http
