#include "http/routes/routes.hpp"

#include "engine/engine.hpp"
#include "http/binding.hpp"
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

std::vector<Route> all_routes(const api::Table& operations, engine::Engine& work,
                              const api::ServerFacts& facts, api::Examination examination) {
  std::vector<Route> all = company_routes(operations);
  append(all, agent_routes(operations));
  append(all, environment_routes(operations));
  append(all, lease_routes(operations));
  append(all, probe_routes(operations));
  append(all, lease_file_routes(work.lease_files));
  append(all, lease_port_routes(work.leases));
  append(all, template_routes(operations));
  append(all, lease_terminal_routes(work.terminals));
  append(all, image_routes(operations));
  append(all, setup_session_routes(operations, work.setup_terminals));
  append(all, run_routes(operations, work.runs));
  append(all, plugin_routes(operations));
  append(all, secret_routes(operations));
  append(all, token_routes(operations));
  append(all, activity_routes(operations, work.activities));
  append(all, instance_routes(operations));
  append(all, session_routes(operations, work.tokens, facts));
  append(all, system_routes(operations, work, facts, std::move(examination)));
  const auto text = std::make_shared<std::string>();
  all.push_back(openapi_route(text));
  *text = encode_text(openapi_document(
      all, {.title = "Berth",
            .version = facts.version,
            .description = "Where an AI agent's work runs: environments, leases, runs, secrets."}));
  return all;
}

}  // namespace berth::http
