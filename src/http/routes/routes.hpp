#pragma once

#include "api/server_facts.hpp"
#include "http/route.hpp"

#include <vector>

namespace berth::api {
class Table;
}

namespace berth::engine {
class Activities;
class Engine;
class LeaseFiles;
class LeaseTerminals;
class Leases;
class Runs;
class SetupTerminals;
class Tokens;
}  // namespace berth::engine

namespace berth::http {

// One table per topic: bindings of operations, and routes of their own where the bytes are the
// point. Together they are the router, the permission check, the decoder and the OpenAPI document.
std::vector<Route> company_routes(const api::Table& operations);
std::vector<Route> agent_routes(const api::Table& operations);
std::vector<Route> environment_routes(const api::Table& operations);
std::vector<Route> lease_routes(const api::Table& operations);
std::vector<Route> probe_routes(const api::Table& operations);
std::vector<Route> lease_file_routes(engine::LeaseFiles& files);
std::vector<Route> lease_port_routes(engine::Leases& leases);
std::vector<Route> template_routes(const api::Table& operations);
std::vector<Route> lease_terminal_routes(engine::LeaseTerminals& terminals);
std::vector<Route> image_routes(const api::Table& operations);
std::vector<Route> setup_session_routes(const api::Table& operations,
                                        engine::SetupTerminals& terminals);
std::vector<Route> run_routes(const api::Table& operations, engine::Runs& runs);
std::vector<Route> plugin_routes(const api::Table& operations);
std::vector<Route> secret_routes(const api::Table& operations);
std::vector<Route> token_routes(const api::Table& operations);
std::vector<Route> activity_routes(const api::Table& operations, engine::Activities& activities);
std::vector<Route> instance_routes(const api::Table& operations);
std::vector<Route> session_routes(const api::Table& operations, engine::Tokens& tokens,
                                  const api::ServerFacts& facts);
std::vector<Route> system_routes(const api::Table& operations, engine::Engine& work,
                                 const api::ServerFacts& facts, api::Examination examination);

// All routes, and the document that describes them at /api/openapi.json.
std::vector<Route> all_routes(const api::Table& operations, engine::Engine& work,
                              const api::ServerFacts& facts, api::Examination examination);

}  // namespace berth::http
