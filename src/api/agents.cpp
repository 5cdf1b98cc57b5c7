#include "engine/accounts/agents.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"
#include "core/config/adapter_schema.hpp"
#include "engine/accounts/agent_homes.hpp"

namespace berth::api {
namespace {

Task<std::vector<core::AdapterDescription>> describe_adapters(engine::Agents& /*agents*/,
                                                              core::Call /*call*/,
                                                              None /*options*/) {
  co_return core::describe_adapters();
}

}  // namespace

std::vector<Entry> agent_operations(engine::Agents& agents, engine::AgentHomes& homes) {
  using core::Permission;
  using engine::AgentHomes;
  using engine::Agents;
  return {
      Operation{.name = "agent.list",
                .needs = Permission::company_read,
                .says = "List the agents of a company",
                .call = use(agents, &Agents::list)},
      Operation{.name = "agent.create",
                .needs = Permission::company_operate,
                .says = "Create an agent",
                .call = use(agents, &Agents::create)},
      Operation{.name = "adapter.list",
                .needs = Permission::signed_in,
                .says = "List the adapters of agents, each with a JSON Schema of its config",
                .call = use(agents, describe_adapters)},
      Operation{.name = "agent.self",
                .needs = Permission::agent_self,
                .says = "Read the agent whose key the caller holds",
                .call = use(agents, &Agents::self)},
      Operation{.name = "agent.get",
                .needs = Permission::company_read,
                .says = "Read an agent",
                .call = use(agents, &Agents::get)},
      Operation{.name = "agent.update",
                .needs = Permission::company_operate,
                .says = "Change an agent",
                .call = use(agents, &Agents::update)},
      Operation{.name = "agent.delete",
                .needs = Permission::company_operate,
                .says = "Delete an agent and revoke its keys",
                .call = use(agents, &Agents::remove)},
      Operation{.name = "agent.homes",
                .needs = Permission::company_operate,
                .says = "List what an agent keeps between its runs, by environment",
                .call = use(homes, &AgentHomes::list)},
      Operation{.name = "agent.reset",
                .needs = Permission::company_operate,
                .says = "Forget the homes and sessions of an agent, so that it begins anew",
                .call = use(homes, &AgentHomes::reset)},
  };
}

}  // namespace berth::api
