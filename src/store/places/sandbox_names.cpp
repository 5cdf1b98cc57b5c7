#include "store/places/sandbox_names.hpp"

#include "store/places/sandboxes.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"

namespace berth::store {

using core::Sandbox;
using core::SandboxState;

bool is_held_elsewhere(const Error& error) {
  return violates(error, "sandboxes_company_id_provider_provider_lease_id");
}

Result<bool> is_named_by_environment(Session& session, const core::CompanyId& company,
                                     const core::EnvironmentId& environment) {
  static const std::string tail =
      "where company_id = $1 and environment_id = $2 and provider_lease_id like $3 and " +
      is_unfinished<SandboxState>() + " limit 1";
  const std::string name = "%" + environment.str() + "%";
  BERTH_TRY(const auto found, select_one<Sandbox>(session, tail, company, environment, name));
  return found.has_value();
}

Result<> retire_idle_sandboxes(Session& session, const Sandbox& wanted, Time now) {
  static const std::string tail =
      "where company_id = $1 and environment_id = $2 and status = 'idle' and fingerprint <> $3"
      " and coalesce(agent_id, '') = $4 and coalesce(execution_workspace_id, '') = $5"
      " and parked_at is null";
  const std::string place = wanted.environment_id ? wanted.environment_id->str() : std::string{};
  const std::string agent = wanted.agent_id ? wanted.agent_id->str() : std::string{};
  const std::string workspace =
      wanted.execution_workspace_id ? wanted.execution_workspace_id->str() : std::string{};
  BERTH_TRY(auto stale, select<Sandbox>(session, tail, wanted.company_id, place, wanted.fingerprint,
                                        agent, workspace));
  for (Stored<Sandbox>& row : stale) {
    row.value.failure_reason = "lease_fingerprint_mismatch";
    BERTH_DO(move_sandbox(session, std::move(row), core::SandboxEvent::destroy_begun, now));
  }
  return {};
}

}  // namespace berth::store
