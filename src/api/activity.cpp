#include "api/tables.hpp"
#include "api/use.hpp"
#include "engine/accounts/activities.hpp"

namespace berth::api {
namespace {

struct ActivityOptions {
  std::optional<std::string> entity_type;
  std::optional<std::string> entity_id;
  std::optional<std::string> action;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(ActivityOptions, (), (entity_type, entity_id, action, limit, after))

Task<core::Listing<core::Activity>> list_activity(engine::Activities& activities, core::Call call,
                                                  core::CompanyId company,
                                                  ActivityOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  engine::ActivityFilter filter{options.entity_type.value_or(""), options.entity_id.value_or(""),
                                options.action.value_or("")};
  co_return co_await activities.list(std::move(call), std::move(company), std::move(filter),
                                     std::move(page));
}

}  // namespace

std::vector<Entry> activity_operations(engine::Activities& activities) {
  return {
      Operation{.name = "activity.list",
                .needs = core::Permission::company_read,
                .says = "List who did what, newest first",
                .call = use(activities, list_activity)},
  };
}

}  // namespace berth::api
