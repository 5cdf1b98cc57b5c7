#include "engine/accounts/activities.hpp"

#include "engine/listing.hpp"
#include "store/companies.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t batch_max = 200;
// Another server's changes wake nobody here, so a wait is short enough for a person not to notice.
constexpr std::chrono::milliseconds activity_wait_max{2000};

}  // namespace

Task<core::Listing<core::Activity>> Activities::list(core::Call call, core::CompanyId company,
                                                     store::ActivityFilter filter,
                                                     core::PageRequest page) {
  using Rows = core::Page<core::Activity>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::list_activity(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows));
}

Task<std::optional<core::EventId>> Activities::newest(core::Call call, core::CompanyId company) {
  BERTH_CO_TRY(const auto page, co_await list(call, company, {}, {.limit = 1}));
  if (page.rows.empty()) co_return std::nullopt;
  co_return page.rows.front().id;
}

Task<bool> Activities::has(core::Call call, core::CompanyId company, core::EventId entry) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<bool> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::has_activity(s, company, entry);
  });
}

Result<std::vector<core::Activity>> Activities::look_after(
    store::Session& session, const core::Call& call, const core::CompanyId& company,
    const std::optional<core::EventId>& last) const {
  BERTH_DO(store::expect_company(session, core::Reach::of(call.who), company));
  if (last) return store::activity_after(session, company, *last, batch_max);
  BERTH_TRY(const auto page, store::list_activity(session, company, {}, {.limit = batch_max}));
  std::vector<core::Activity> out;
  for (auto row = page.rows.rbegin(); row != page.rows.rend(); ++row) out.push_back(row->value);
  return out;
}

Task<std::vector<core::Activity>> Activities::after(core::Call call, core::CompanyId company,
                                                    std::optional<core::EventId> last) {
  using Entries = std::vector<core::Activity>;
  const auto look = [&](store::Session& s) { return look_after(s, call, company, last); };
  BERTH_CO_TRY(Entries entries, co_await services_.store.read(look));
  if (!entries.empty()) co_return entries;
  BERTH_CO_DO(co_await services_.feed.wait(company, activity_wait_max));
  co_return co_await services_.store.read(look);
}

Task<CompanyNews> Activities::news(core::Call call, core::CompanyId company,
                                   std::optional<core::EventId> last, std::uint64_t seen) {
  const auto look = [&](store::Session& s) { return look_after(s, call, company, last); };
  BERTH_CO_TRY(auto entries, co_await services_.store.read(look));
  if (entries.empty() && changes(company) == seen) {
    BERTH_CO_DO(co_await services_.feed.wait(company, activity_wait_max));
    BERTH_CO_TRY(entries, co_await services_.store.read(look));
  }
  co_return CompanyNews{.entries = std::move(entries), .changes = changes(company)};
}

}  // namespace berth::engine
