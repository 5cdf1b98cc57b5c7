#include "http/routes/routes.hpp"

#include "http/endpoint.hpp"
#include "http/openapi.hpp"

namespace berth::http {
namespace {

Task<Response> document(std::shared_ptr<const std::string> text) {
  co_return Response{.status = 200, .content_type = "application/json", .body = *text};
}

// The document describes itself too, so its route is in the table before the text is written.
Route openapi_route(std::shared_ptr<const std::string> text) {
  return Endpoint<None, None, None, Response>{
      .verb = Verb::get,
      .path = "/api/openapi.json",
      .needs = core::Permission::open,
      .tag = "system",
      .says = "This description of the API",
      .call = [text](core::Call /*call*/, auto /*in*/) { return document(text); }};
}

}  // namespace

std::vector<Route> all_routes(engine::Engine& work, const ServerFacts& facts,
                              Examination examination) {
  std::vector<Route> all;
  const auto add = [&](std::vector<Route> table) {
    for (Route& route : table) all.push_back(std::move(route));
  };
  add(company_routes(work));
  add(company_usage_routes(work));
  add(agent_routes(work));
  add(environment_routes(work));
  add(lease_routes(work));
  add(lease_file_routes(work));
  add(lease_port_routes(work));
  add(template_routes(work));
  add(lease_terminal_routes(work));
  add(setup_session_routes(work));
  add(run_routes(work));
  add(plugin_routes(work));
  add(secret_routes(work));
  add(token_routes(work));
  add(activity_routes(work));
  add(instance_routes(work));
  add(session_routes(work, facts));
  add(system_routes(work, facts, std::move(examination)));
  const auto text = std::make_shared<std::string>();
  all.push_back(openapi_route(text));
  *text = encode_text(openapi_document(
      all, {.title = "Berth",
            .version = facts.version,
            .description = "Where an AI agent's work runs: environments, leases, runs, secrets."}));
  return all;
}

}  // namespace berth::http
