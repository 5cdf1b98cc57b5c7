#include "base/json/peek.hpp"
#include "engine/environments/environments.hpp"
#include "store/activity.hpp"
#include "store/companies.hpp"

namespace berth::engine {
namespace {

Result<std::optional<LastTest>> last_test(store::Session& session,
                                          const core::Environment& environment) {
  const store::ActivityFilter tests{"environment", environment.id.str(), "environment.probed"};
  BERTH_TRY(const auto found,
            store::list_activity(session, environment.company_id, tests, {.limit = 1}));
  if (found.rows.empty()) return std::nullopt;
  const core::Activity& entry = found.rows.front().value;
  LastTest test{.ok = false, .summary = {}, .at = entry.created_at};
  test.ok = is_true_in(entry.details, "ok");
  test.summary = peek<std::string>(entry.details, "summary").value_or("");
  test.isolation = peek<bj::object>(entry.details, "isolation");
  return test;
}

}  // namespace

Task<std::vector<EnvironmentOverview>> Environments::overview(core::Call call,
                                                              core::CompanyId company) {
  using Overviews = std::vector<EnvironmentOverview>;
  BERTH_CO_TRY(const auto listed,
               co_await list(call, company, {}, {.limit = core::page_limit_max}));
  co_return co_await services_.store.read([&](store::Session& s) -> Result<Overviews> {
    Overviews all;
    for (const EnvironmentView& view : listed.rows) {
      BERTH_TRY(const store::EnvironmentUse use, store::environment_use(s, view));
      BERTH_TRY(auto test, last_test(s, view));
      all.push_back({.environment = view,
                     .is_company_default = use.is_company_default,
                     .live_lease_count = use.live_leases,
                     .pending_cleanup_lease_count = use.pending_cleanup_leases,
                     .agent_default_count = use.agent_defaults,
                     .last_test = std::move(test)});
    }
    return all;
  });
}

}  // namespace berth::engine
