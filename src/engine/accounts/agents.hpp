#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/agent.hpp"
#include "engine/accounts/agent_homes.hpp"
#include "engine/environments/catalog.hpp"
#include "engine/services.hpp"

namespace berth::engine {

struct CreateAgent {
  std::string name;
  std::optional<std::string> role;
  std::optional<std::string> title;
  core::AdapterType adapter_type;
  std::optional<bj::object> adapter_config;
  std::optional<bj::object> runtime_config;
  std::optional<core::EnvironmentId> default_environment_id;
  std::optional<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(CreateAgent, (),
                      (name, role, title, adapter_type, adapter_config, runtime_config,
                       default_environment_id, metadata))

struct UpdateAgent {
  Patch<std::string> name;
  Patch<std::string> role;
  Patch<std::string> title;
  Patch<core::AgentStatus> status;
  Patch<core::AdapterType> adapter_type;
  Patch<bj::object> adapter_config;
  Patch<bj::object> runtime_config;
  Patch<core::EnvironmentId> default_environment_id;
  Patch<bj::object> metadata;
};
BOOST_DESCRIBE_STRUCT(UpdateAgent, (),
                      (name, role, title, status, adapter_type, adapter_config, runtime_config,
                       default_environment_id, metadata))

class Agents {
 public:
  Agents(Services& services, const Catalog& catalog, AgentHomes& homes)
      : services_(services), catalog_(catalog), homes_(homes) {}

  Task<core::Listing<core::Agent>> list(core::Call call, core::CompanyId company,
                                        core::PageRequest page);
  Task<core::Stored<core::Agent>> get(core::Call call, core::AgentId id);
  // The agent that owns the caller's key.
  Task<core::Stored<core::Agent>> self(core::Call call);
  Task<core::Stored<core::Agent>> create(core::Call call, core::CompanyId company,
                                         CreateAgent wanted);
  Task<core::Stored<core::Agent>> update(core::Call call, core::AgentId id, UpdateAgent change);
  Task<core::Agent> remove(core::Call call, core::AgentId id);

 private:
  // Converts the adapter config to stored form, binds its secrets, and checks that the adapter can
  // work in the environment. `stored` is the previous config: its keys are kept, known or not.
  Result<> settle(store::Session& session, core::Agent& agent, const bj::object& stored);

  Services& services_;
  const Catalog& catalog_;
  AgentHomes& homes_;
};

}  // namespace berth::engine
