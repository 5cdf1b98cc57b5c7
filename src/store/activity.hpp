#pragma once

#include "core/rows/activity.hpp"
#include "store/sql/mapping.hpp"

namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Activity> = "activity";

struct ActivityFilter {
  std::string entity_type;  // "" = any
  std::string entity_id;    // "" = any
  std::string action;       // "" = any
};

Result<> insert_activity(Session& session, const core::Activity& activity);
// Ordered by (created_at, id) descending.
Result<Page<core::Activity>> list_activity(Session& session, const core::CompanyId& company,
                                           const ActivityFilter& filter, const PageRequest& page);
Result<bool> has_activity(Session& session, const core::CompanyId& company,
                          const core::EventId& entry);
// Up to `limit` entries after this one, oldest first: what a stream sends to a client that comes
// back.
Result<std::vector<core::Activity>> activity_after(Session& session, const core::CompanyId& company,
                                                   const core::EventId& after, std::int64_t limit);

}  // namespace berth::store
