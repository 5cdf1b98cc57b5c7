#include "engine/engine.hpp"
#include "http/binding.hpp"
#include "http/endpoint.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct Health {
  std::string status;
  std::string version;
  std::string deployment_mode;
  std::string database;
  Time started_at;
};
BOOST_DESCRIBE_STRUCT(Health, (), (status, version, deployment_mode, database, started_at))

struct Readiness {
  std::string status;
  std::string store;
  std::string disk;  // "ok", or "full": command output is lost
  std::optional<std::string> error;
};
BOOST_DESCRIBE_STRUCT(Readiness, (), (status, store, disk, error))

Task<Response> constant(Response answer) {
  co_return answer;
}

// A full disk loses output, but the server remains ready: requests that fail for lack of space
// report that themselves, and another server may have the same problem.
Task<Response> readiness(engine::Engine& work, std::function<bool()> keeps_output) {
  const Result<> answered = co_await work.ready();
  const Readiness ready{.status = answered ? "ready" : "unavailable",
                        .store = answered ? "ok" : std::string{name_of(answered.error().code)},
                        .disk = keeps_output() ? "ok" : "full",
                        .error = answered ? std::nullopt : std::optional{answered.error().message}};
  co_return json_response(answered ? 200 : 503, ready);
}

}  // namespace

std::vector<Route> system_routes(const api::Table& operations, engine::Engine& work,
                                 const api::ServerFacts& facts, api::Examination examination) {
  using core::Permission;
  const Response health =
      json_response(200, Health{"ok", facts.version, facts.mode, facts.database, facts.started_at});
  return {
      Endpoint<None, None, None, Response>{
          .verb = Verb::get,
          .path = "/api/health",
          .needs = Permission::open,
          .tag = "system",
          .says = "Say that the process answers; touches nothing",
          .is_always_answered = true,
          .call = [health](core::Call /*call*/, auto /*in*/) { return constant(health); }},
      Endpoint<None, None, None, Response>{
          .verb = Verb::get,
          .path = "/api/health/ready",
          .needs = Permission::open,
          .tag = "system",
          .says = "Say whether the store answers: 200 or 503; and whether the disk of the home has "
                  "room for the output of commands (disk: ok or full), which changes no status",
          .call = [&work, keeps_output = std::move(examination.keeps_output)](
                      core::Call /*call*/, auto /*in*/) { return readiness(work, keeps_output); }},
      bind(operations, "system",
           {.path = "/api/instance/findings", .operation = "instance.findings"}),
      bind(operations, "system", {.path = "/api/instance/walls", .operation = "instance.walls"}),
      bind(operations, "system", {.path = "/api/instance/nodes", .operation = "instance.nodes"}),
      Endpoint<None, None, None, Response>{
          .verb = Verb::get,
          .path = "/metrics",
          .needs = Permission::instance_admin,
          .tag = "system",
          .says = "Metrics in the text format of Prometheus",
          .call =
              [metrics = std::move(examination.metrics)](core::Call /*call*/, auto /*in*/) {
                return constant({.status = 200,
                                 .content_type = "text/plain; version=0.0.4; charset=utf-8",
                                 .body = metrics()});
              }},
  };
}

}  // namespace berth::http
