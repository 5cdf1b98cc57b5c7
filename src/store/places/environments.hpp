#pragma once

#include "core/access.hpp"
#include "core/rows/environment.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Environment> = "environments";

struct EnvironmentFilter {
  std::optional<core::DriverKind> driver;
  std::optional<core::EnvironmentStatus> status;
};

// What blocks the deletion of an environment and which rows would lose their selection, counted in
// one snapshot.
struct EnvironmentUse {
  std::int64_t pending_cleanup_leases = 0;
  std::int64_t reusable_sandboxes = 0;  // not yet destroyed, and not held by an ephemeral lease
  std::int64_t live_leases = 0;         // acquiring, active, releasing
  std::int64_t agent_defaults = 0;
  std::int64_t secret_bindings = 0;
  bool is_company_default = false;
};

// environment_name_taken or environment_local_exists when a unique index rejects the row.
Result<> insert_environment(Session& session, const core::Environment& environment);
// Ordered by (updated_at, id) descending.
Result<Page<core::Environment>> list_environments(Session& session, const core::CompanyId& company,
                                                  const EnvironmentFilter& filter,
                                                  const PageRequest& page);
Result<Stored<core::Environment>> find_environment(Session& session, const core::Reach& reach,
                                                   const core::EnvironmentId& id);
Result<std::optional<Stored<core::Environment>>> find_local_environment(
    Session& session, const core::CompanyId& company);
// Across all companies, for the server itself.
Result<std::vector<Stored<core::Environment>>> environments_of_provider(Session& session,
                                                                        std::string_view provider,
                                                                        std::int64_t limit);
// A company's active sandbox environments whose config asks for a warm pool, oldest first.
Result<std::vector<Stored<core::Environment>>> pooled_environments(Session& session,
                                                                   const core::CompanyId& company);
// `conflict` when the row changed since it was read; environment_name_taken when another
// environment has the new name.
Result<> update_environment(Session& session, const Stored<core::Environment>& environment);
Result<EnvironmentUse> environment_use(Session& session, const core::Environment& environment);
// Deletes only while nothing blocks it (local driver, company default, pending cleanup, reusable
// sandbox). False when something does. Clears agents' selections and drops bindings; leases keep
// their row without an environment.
Result<bool> delete_environment(Session& session, const core::EnvironmentId& id);

}  // namespace berth::store
