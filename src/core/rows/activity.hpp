#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"
#include "core/ids.hpp"

namespace berth::core {

// One audit trail entry: who did what to which object. `details` names fields, never secret values
// or raw config.
struct Activity {
  EventId id;
  CompanyId company_id;
  ActorType actor_type = ActorType::system;
  std::string actor_id;
  std::string action;
  std::string entity_type;
  std::string entity_id;
  std::optional<AgentId> agent_id;
  std::optional<RunId> run_id;
  bj::object details;
  Time created_at;
};
BOOST_DESCRIBE_STRUCT(Activity, (),
                      (id, company_id, actor_type, actor_id, action, entity_type, entity_id,
                       agent_id, run_id, details, created_at))

}  // namespace berth::core
