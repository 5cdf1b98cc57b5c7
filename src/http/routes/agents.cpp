#include "core/config/adapter_schema.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

struct AgentPath {
  core::AgentId agent;
};
BOOST_DESCRIBE_STRUCT(AgentPath, (), (agent))

Task<std::vector<core::AdapterDescription>> describe() {
  co_return core::describe_adapters();
}

}  // namespace

std::vector<Route> agent_routes(engine::Engine& work) {
  using core::Agent;
  using core::Permission;
  engine::Agents& agents = work.agents;
  engine::AgentHomes& homes = work.homes;
  return {
      Endpoint<CompanyPath, PageQuery, None, core::Listing<Agent>>{
          .verb = Verb::get,
          .path = "/api/companies/{company}/agents",
          .needs = Permission::company_read,
          .tag = "agents",
          .says = "List the agents of a company",
          .call =
              [&agents](core::Call call, auto in) {
                return with_page(
                    in.query, [&agents, call, company = in.path.company](core::PageRequest page) {
                      return agents.list(call, company, std::move(page));
                    });
              }},
      Endpoint<CompanyPath, None, engine::CreateAgent, core::Stored<Agent>>{
          .verb = Verb::post,
          .path = "/api/companies/{company}/agents",
          .needs = Permission::company_operate,
          .tag = "agents",
          .says = "Create an agent",
          .status = 201,
          .call =
              [&agents](core::Call call, auto in) {
                return agents.create(call, in.path.company, std::move(in.body));
              }},
      Endpoint<None, None, None, std::vector<core::AdapterDescription>>{
          .verb = Verb::get,
          .path = "/api/adapters",
          .needs = Permission::signed_in,
          .tag = "agents",
          .says = "List the adapters of agents, each with a JSON Schema of its config",
          .call = [](core::Call /*call*/, auto /*in*/) { return describe(); }},
      Endpoint<None, None, None, core::Stored<Agent>>{
          .verb = Verb::get,
          .path = "/api/agents/me",
          .needs = Permission::agent_self,
          .tag = "agents",
          .says = "Read the agent whose key the caller holds",
          .call = [&agents](core::Call call, auto /*in*/) { return agents.self(call); }},
      Endpoint<AgentPath, None, None, core::Stored<Agent>>{
          .verb = Verb::get,
          .path = "/api/agents/{agent}",
          .needs = Permission::company_read,
          .tag = "agents",
          .says = "Read an agent",
          .call = [&agents](core::Call call, auto in) { return agents.get(call, in.path.agent); }},
      Endpoint<AgentPath, None, engine::UpdateAgent, core::Stored<Agent>>{
          .verb = Verb::patch,
          .path = "/api/agents/{agent}",
          .needs = Permission::company_operate,
          .tag = "agents",
          .says = "Change an agent",
          .call = [&agents](
                      core::Call call,
                      auto in) { return agents.update(call, in.path.agent, std::move(in.body)); }},
      Endpoint<AgentPath, None, None, Agent>{
          .verb = Verb::delete_,
          .path = "/api/agents/{agent}",
          .needs = Permission::company_operate,
          .tag = "agents",
          .says = "Delete an agent and revoke its keys",
          .call = [&agents](core::Call call,
                            auto in) { return agents.remove(call, in.path.agent); }},
      Endpoint<AgentPath, None, None, std::vector<core::AgentHome>>{
          .verb = Verb::get,
          .path = "/api/agents/{agent}/homes",
          .needs = Permission::company_operate,
          .tag = "agents",
          .says = "List what an agent keeps between its runs, by environment",
          .call = [&homes](core::Call call, auto in) { return homes.list(call, in.path.agent); }},
      Endpoint<AgentPath, None, engine::ResetAgent, engine::AgentReset>{
          .verb = Verb::post,
          .path = "/api/agents/{agent}/reset",
          .needs = Permission::company_operate,
          .tag = "agents",
          .says = "Forget the homes and sessions of an agent, so that it begins anew",
          .call = [&homes](
                      core::Call call,
                      auto in) { return homes.reset(call, in.path.agent, std::move(in.body)); }},
  };
}

}  // namespace berth::http
