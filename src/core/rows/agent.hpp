#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// An agent: an adapter that can start it, and its preferred environment.
struct Agent {
  AgentId id;
  CompanyId company_id;
  std::string name;
  std::string role;
  std::optional<std::string> title;
  AgentStatus status = AgentStatus::idle;
  AdapterType adapter_type = AdapterType::process;
  bj::object adapter_config;
  bj::object runtime_config;
  std::optional<EnvironmentId> default_environment_id;
  std::optional<bj::object> metadata;
  std::optional<Time> last_heartbeat_at;
  Time created_at;
  Time updated_at;
};
BOOST_DESCRIBE_STRUCT(Agent, (),
                      (id, company_id, name, role, title, status, adapter_type, adapter_config,
                       runtime_config, default_environment_id, metadata, last_heartbeat_at,
                       created_at, updated_at))

}  // namespace berth::core
