#include "engine/accounts/activities.hpp"
#include "http/binding.hpp"
#include "http/routes/inputs.hpp"
#include "http/routes/routes.hpp"

namespace berth::http {
namespace {

// The entry after which a stream sends: the client's own, or the newest one. A client whose entry
// is not in the trail (of another company, of a database that was restored) cannot be sent what
// came after it: an event reports it to the client, and the stream begins now.
Task<std::optional<core::EventId>> find_start(engine::Activities& activities, core::Call call,
                                              core::CompanyId company,
                                              std::optional<std::string> last_event_id,
                                              EventSink& sink) {
  if (!last_event_id) co_return co_await activities.newest(call, company);
  BERTH_CO_TRY(const core::EventId last, core::EventId::parse(*last_event_id));
  BERTH_CO_TRY(const bool is_known, co_await activities.has(call, company, last));
  if (is_known) co_return last;
  BERTH_CO_TRY(const auto newest, co_await activities.newest(call, company));
  const bj::object data{{"lastEventId", last.str()},
                        {"message", "Entry " + last.str() +
                                        " is not in the trail: the stream begins now, and what "
                                        "came before is in the list of activities"}};
  Event missed{.id = newest ? newest->str() : "", .name = "missed", .data = encode_text(data)};
  BERTH_CO_DO(co_await sink.send(std::move(missed)));
  co_return newest;
}

// Sends every entry after `last`, in order, as long as somebody listens. A client that comes back
// says where it was.
Task<> stream(engine::Activities& activities, core::Call call, core::CompanyId company,
              std::optional<std::string> last_event_id, EventSink& sink) {
  BERTH_CO_TRY(std::optional<core::EventId> last,
               co_await find_start(activities, call, company, last_event_id, sink));
  if (!last_event_id) {
    // Says "you are connected" at once, and from where a later visit goes on.
    Event hello{.id = last ? last->str() : "", .name = "ready", .data = "{}"};
    BERTH_CO_DO(co_await sink.send(std::move(hello)));
  }
  while (sink.open()) {
    BERTH_CO_TRY(const auto entries, co_await activities.after(call, company, last));
    for (const core::Activity& entry : entries) {
      Event event{.id = entry.id.str(), .name = "activity", .data = encode_text(entry)};
      BERTH_CO_DO(co_await sink.send(std::move(event)));
      last = entry.id;
    }
  }
  co_return Result<>{};
}

// Reports that something in the company has changed, and sends the entries of its trail, so that
// clients reload what they show. A client that reconnects names the last entry it saw and reloads
// everything, because changes without an entry are not kept.
Task<> stream_changes(engine::Activities& activities, core::Call call, core::CompanyId company,
                      std::optional<std::string> last_event_id, EventSink& sink) {
  std::uint64_t seen = activities.changes(company);
  BERTH_CO_TRY(std::optional<core::EventId> last,
               co_await find_start(activities, call, company, std::move(last_event_id), sink));
  Event hello{.id = last ? last->str() : "", .name = "ready", .data = "{}"};
  BERTH_CO_DO(co_await sink.send(std::move(hello)));
  while (sink.open()) {
    BERTH_CO_TRY(const auto news, co_await activities.news(call, company, last, seen));
    for (const core::Activity& entry : news.entries) {
      Event event{.id = entry.id.str(), .name = "activity", .data = encode_text(entry)};
      BERTH_CO_DO(co_await sink.send(std::move(event)));
      last = entry.id;
    }
    if (news.changes != seen) {
      Event event{.name = "changed", .data = "{}"};
      BERTH_CO_DO(co_await sink.send(std::move(event)));
      seen = news.changes;
    }
  }
  co_return Result<>{};
}

}  // namespace

std::vector<Route> activity_routes(const api::Table& operations, engine::Activities& activities) {
  using core::Permission;
  return {
      bind(operations, "activity",
           {.path = "/api/companies/{company}/activity", .operation = "activity.list"}),
      EventStream<CompanyPath, None>{
          .path = "/api/companies/{company}/activity/stream",
          .needs = Permission::company_read,
          .tag = "activity",
          .says = "Follow the activity of a company; Last-Event-ID resumes, and an event `missed` "
                  "reports an id that is not in the trail",
          .call =
              [&activities](core::Call call, auto in, std::optional<std::string> last_event_id,
                            EventSink& sink) {
                return stream(activities, std::move(call), in.path.company,
                              std::move(last_event_id), sink);
              }},
      EventStream<CompanyPath, None>{
          .path = "/api/companies/{company}/changes/stream",
          .needs = Permission::company_read,
          .tag = "activity",
          .says = "Be told when anything of a company changes; Last-Event-ID resumes its activity",
          .call =
              [&activities](core::Call call, auto in, std::optional<std::string> last_event_id,
                            EventSink& sink) {
                return stream_changes(activities, std::move(call), in.path.company,
                                      std::move(last_event_id), sink);
              }},
  };
}

}  // namespace berth::http
