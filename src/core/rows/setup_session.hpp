#pragma once

#include "base/json/json.hpp"
#include "core/ids.hpp"
#include "core/lifecycle.hpp"

namespace berth::core {

// A user prepares a sandbox by hand; it is then captured, and every later sandbox of the
// environment starts from that template.
struct SetupSession {
  SetupSessionId id;
  CompanyId company_id;
  EnvironmentId environment_id;
  std::optional<TemplateId> template_id = {};           // what its sandbox starts from
  std::optional<TemplateId> promoted_template_id = {};  // what it is captured as
  std::string provider = {};
  LeaseId environment_lease_id;  // of its sandbox
  SetupState status = SetupState::starting;
  std::string started_by = {};
  std::optional<NodeId> node_id = {};  // the server that works with it
  Time expires_at = {};
  std::optional<Time> finished_at = {};
  std::optional<std::string> failure_reason = {};
  std::optional<bj::object> metadata = {};
  std::optional<Time> next_attempt_at = {};  // when the sweeper acts
  Time created_at = {};
  Time updated_at = {};
};
BOOST_DESCRIBE_STRUCT(SetupSession, (),
                      (id, company_id, environment_id, template_id, promoted_template_id, provider,
                       environment_lease_id, status, started_by, node_id, expires_at, finished_at,
                       failure_reason, metadata, next_attempt_at, created_at, updated_at))

}  // namespace berth::core
