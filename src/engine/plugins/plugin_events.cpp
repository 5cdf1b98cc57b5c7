#include "engine/plugins/plugin_events.hpp"

#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "engine/retry.hpp"
#include "store/activity.hpp"
#include "store/companies.hpp"

#include <algorithm>
#include <array>
#include <ranges>

namespace berth::engine {
namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t requests_max = 100;  // per plugin
constexpr std::size_t pattern_bytes_max = 200;
constexpr std::int64_t events_at_a_time = 200;
constexpr auto pause = 250ms;
// Entries written by another server are found by polling.
constexpr auto look_anyway_after = 5s;

bool is_pattern(std::string_view text) {
  if (text.ends_with(".*")) text.remove_suffix(2);
  return !text.empty() && text.size() <= pattern_bytes_max && !text.contains('*');
}

// For a company seen for the first time; oldest first.
Result<std::vector<core::Activity>> newest(store::Session& session,
                                           const core::CompanyId& company) {
  BERTH_TRY(auto page, store::list_activity(session, company, {}, {.limit = events_at_a_time}));
  std::vector<core::Activity> out;
  for (auto& row : std::views::reverse(page.rows)) out.push_back(std::move(row.value));
  return out;
}

}  // namespace

Result<EventRequest> parse_event_request(const bj::object& params) {
  EventRequest request{.pattern = text_in(params, "eventPattern").value_or("")};
  if (!is_pattern(request.pattern)) {
    return fail(Errc::validation_failed,
                "/eventPattern: must be the name of an event, or end in \".*\"");
  }
  const auto filter = peek<bj::value>(params, "filter");
  if (!filter) return request;
  if (!filter->is_object()) return fail(Errc::validation_failed, "/filter: is not an object");
  const std::array<std::pair<std::string_view, std::optional<std::string>*>, 3> known{
      {{"companyId", &request.company_id},
       {"agentId", &request.agent_id},
       {"projectId", &request.project_id}}};
  for (const auto& member : filter->get_object()) {
    const std::string_view key{member.key().data(), member.key().size()};
    const auto* field = std::ranges::find(known, key, [](const auto& one) { return one.first; });
    if (field == known.end() || !member.value().is_string()) {
      return fail(Errc::validation_failed,
                  "/filter/" + std::string{key} + ": is not a filter that the host knows");
    }
    *field->second = std::string{member.value().get_string()};
  }
  return request;
}

bool wants(const EventRequest& request, const core::Activity& happened) {
  const std::string_view pattern = request.pattern;
  const bool named = pattern.ends_with(".*")
                         ? happened.action.starts_with(pattern.substr(0, pattern.size() - 1))
                         : happened.action == pattern;
  if (!named || happened.created_at < request.since) return false;
  if (request.company_id && *request.company_id != happened.company_id.str()) return false;
  if (request.project_id && request.project_id != text_in(happened.details, "projectId"))
    return false;
  if (!request.agent_id) return true;
  return happened.agent_id ? happened.agent_id->str() == *request.agent_id
                           : request.agent_id == text_in(happened.details, "agentId");
}

bj::object to_event(const core::Activity& happened) {
  return {{"eventId", happened.id.str()},
          {"eventType", happened.action},
          {"companyId", happened.company_id.str()},
          {"occurredAt", to_iso8601(happened.created_at)},
          {"actorId", happened.actor_id},
          {"actorType", name_of(happened.actor_type)},
          {"entityId", happened.entity_id},
          {"entityType", happened.entity_type},
          {"payload", happened.details}};
}

PluginEvents::PluginEvents(Services services, asio::any_io_executor executor)
    : services_(services), executor_(executor), tasks_(std::move(executor)) {}

Task<> PluginEvents::subscribe(core::PluginId plugin, EventRequest request) {
  if (requests_.contains(plugin) && requests_.at(plugin).size() >= requests_max) {
    co_return fail(Errc::overloaded, "a plugin has at most " + std::to_string(requests_max) +
                                         " subscriptions at a time");
  }
  // Earlier events are not delivered.
  request.since = services_.clock.now();
  requests_[std::move(plugin)].push_back(std::move(request));
  if (!std::exchange(pumping_, true)) tasks_.start("plugin events", pump());
  co_return Result<>{};
}

void PluginEvents::forget(const core::PluginId& plugin) {
  requests_.erase(plugin);
}

Task<> PluginEvents::pump() {
  told_.clear();
  Result<> waited;
  while (waited && !requests_.empty()) {
    const Result<> looked = co_await look();
    if (!looked && looked.error().code == Errc::cancelled) break;
    if (!looked) log::warn("plugin.events", {{"error", looked.error().message}});
    waited = co_await pause_for(executor_, pause);
  }
  pumping_ = false;
  co_return Result<>{};
}

Task<std::vector<core::CompanyId>> PluginEvents::companies() {
  co_return co_await services_.store.read(
      [](store::Session& s) -> Result<std::vector<core::CompanyId>> {
        std::vector<core::CompanyId> all;
        core::PageRequest page;
        while (true) {
          BERTH_TRY(const auto some, store::list_companies(s, core::Reach::everything(), page));
          for (const auto& company : some.rows) all.push_back(company.value.id);
          if (!some.next) return all;
          page.after = some.next;
        }
      });
}

Task<> PluginEvents::look() {
  BERTH_CO_TRY(const std::vector<core::CompanyId> all, co_await companies());
  for (const core::CompanyId& company : all) {
    const std::uint64_t changes = services_.feed.changes(company);
    Told& told = told_[company];
    const bool is_due = SteadyClock::now() - told.looked_at >= look_anyway_after;
    if (told.changes == changes && !is_due) continue;
    told.changes = changes;
    told.looked_at = SteadyClock::now();
    BERTH_CO_DO(co_await tell_news(company));
  }
  co_return Result<>{};
}

Task<> PluginEvents::tell_news(core::CompanyId company) {
  std::vector<core::Activity> news;
  do {
    const std::optional<core::EventId> last = told_[company].last;
    BERTH_CO_TRY(news, co_await services_.store.read([&](store::Session& s) {
      return last ? store::activity_after(s, company, *last, events_at_a_time) : newest(s, company);
    }));
    for (const core::Activity& happened : news) {
      told_[company].last = happened.id;
      tell(happened);
    }
  } while (std::ssize(news) == events_at_a_time);
  co_return Result<>{};
}

void PluginEvents::tell(const core::Activity& happened) {
  for (const auto& [plugin, requests] : requests_) {
    const bool wanted = std::ranges::any_of(
        requests, [&](const EventRequest& request) { return wants(request, happened); });
    if (wanted && deliver_) deliver_(plugin, happened.company_id, to_event(happened));
  }
}

}  // namespace berth::engine
