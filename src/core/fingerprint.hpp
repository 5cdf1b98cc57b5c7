#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"

namespace berth::core {

// JSON with object keys in byte order and no whitespace, so that equal values have equal text. 1,
// 1.0 and 1e0 are the same number.
std::string canonical_json(const bj::value& value);

// Everything that must match for an idle sandbox to serve another lease.
struct ReuseKey {
  CompanyId company_id;
  EnvironmentId environment_id;
  std::string provider = {};
  bj::object config = {};  // secret ids, never values
  std::optional<std::string> plugin_version = {};
  std::map<std::string, std::int64_t> secret_versions = {};  // by secret id: a rotation ends reuse
  std::optional<std::string> template_id = {};
  std::optional<AgentId> agent_id = {};
  std::optional<WorkspaceId> execution_workspace_id = {};  // set only under the by-workspace policy
};
BOOST_DESCRIBE_STRUCT(ReuseKey, (),
                      (company_id, environment_id, provider, config, plugin_version,
                       secret_versions, template_id, agent_id, execution_workspace_id))

// "v1:sha256:<64 hex digits>" of the canonical JSON of the key.
std::string fingerprint(const ReuseKey& key);

}  // namespace berth::core
