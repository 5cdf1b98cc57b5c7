#include "store/leases.hpp"

#include "store/constraint.hpp"
#include "store/paging.hpp"

namespace berth::store {

std::string unfinished_lease_states() {
  std::string list;
  for (const core::LeaseState state : all<core::LeaseState>()) {
    if (core::is_final(state)) continue;
    list += (list.empty() ? "'" : ", '") + std::string{name_of(state)} + "'";
  }
  return list;
}

Result<> insert_lease(Session& session, const core::Lease& lease) {
  Result<> done = insert(session, lease);
  if (done || !violates_reference(done.error())) return done;
  return fail(Errc::environment_not_found, "Environment not found",
              "it was deleted while the lease was being made");
}

Result<Page<core::Lease>> list_leases(Session& session, const core::EnvironmentId& environment,
                                      std::optional<core::LeaseState> status,
                                      const PageRequest& page) {
  Filter filter;
  filter.equal("environment_id", environment).equal_if("status", status);
  return select_page(session, filter, &core::Lease::last_used_at, page);
}

Result<Stored<core::Lease>> find_lease(Session& session, const core::Reach& reach,
                                       const core::LeaseId& id) {
  BERTH_TRY(auto found,
            select_one<core::Lease>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                    reach.sql()));
  if (found) return *std::move(found);
  return fail(Errc::lease_not_found, "Environment lease not found",
              "the environment's page lists its leases");
}

}  // namespace berth::store
