#pragma once

#include "core/access.hpp"
#include "core/lease.hpp"
#include "store/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Lease> = "environment_leases";

// "'acquiring', 'active', ...": for SQL, the states that something still follows.
std::string unfinished_lease_states();

Result<> insert_lease(Session& session, const core::Lease& lease);
// Ordered by (last_used_at, id) descending.
Result<Page<core::Lease>> list_leases(Session& session, const core::EnvironmentId& environment,
                                      std::optional<core::LeaseState> status,
                                      const PageRequest& page);
Result<Stored<core::Lease>> find_lease(Session& session, const core::Reach& reach,
                                       const core::LeaseId& id);

}  // namespace berth::store
