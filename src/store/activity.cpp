#include "store/activity.hpp"

#include "store/sql/constraint.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {

Result<> insert_activity(Session& session, const core::Activity& activity) {
  Result<> done = insert(session, activity);
  if (done || !violates_reference(done.error())) return done;
  return fail(Errc::company_not_found, "Company not found");
}

Result<Page<core::Activity>> list_activity(Session& session, const core::CompanyId& company,
                                           const ActivityFilter& filter, const PageRequest& page) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("entity_type", filter.entity_type)
      .equal_if("entity_id", filter.entity_id)
      .equal_if("action", filter.action);
  return select_page(session, conditions, &core::Activity::created_at, page);
}

Result<bool> has_activity(Session& session, const core::CompanyId& company,
                          const core::EventId& entry) {
  BERTH_TRY(const auto found, select_one<core::Activity>(
                                  session, "where id = $1 and company_id = $2", entry, company));
  return found.has_value();
}

Result<std::vector<core::Activity>> activity_after(Session& session, const core::CompanyId& company,
                                                   const core::EventId& after, std::int64_t limit) {
  // Two statements, because PostgreSQL uses no index to compare a row with a subquery.
  BERTH_TRY(const auto start, select_one<core::Activity>(
                                  session, "where id = $1 and company_id = $2", after, company));
  if (!start) return {};
  BERTH_TRY(auto found, select<core::Activity>(session,
                                               "where company_id = $1 and (created_at, id) > "
                                               "($2, $3) order by created_at, id limit $4",
                                               company, start->value.created_at, after, limit));
  std::vector<core::Activity> list;
  list.reserve(found.size());
  for (Stored<core::Activity>& row : found) list.push_back(std::move(row.value));
  return list;
}

}  // namespace berth::store
