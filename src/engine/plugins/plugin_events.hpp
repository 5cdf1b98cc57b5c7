#pragma once

#include "base/async/task_group.hpp"
#include "core/rows/activity.hpp"
#include "engine/services.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace berth::engine {

// A worker's subscription to the audit trail: an action by name, or all with a prefix ("run.*"),
// optionally limited to one company, agent or project.
struct EventRequest {
  std::string pattern;
  std::optional<std::string> company_id = {};
  std::optional<std::string> agent_id = {};
  std::optional<std::string> project_id = {};
  Time since = {};
};
// Parses the params of `events.subscribe`. An unknown filter is rejected, because ignoring it would
// let more through than requested.
Result<EventRequest> parse_event_request(const bj::object& params);
bool wants(const EventRequest& request, const core::Activity& happened);
// As `onEvent` carries it.
bj::object to_event(const core::Activity& happened);

// Delivers events to workers from the moment they subscribe. Events during a worker's downtime are
// not delivered later: a subscription lives as long as the process that made it. Single-threaded.
class PluginEvents {
 public:
  using Deliver =
      std::function<void(const core::PluginId&, const core::CompanyId&, bj::object event)>;

  PluginEvents(Services services, asio::any_io_executor executor);

  void deliver_by(Deliver deliver) { deliver_ = std::move(deliver); }
  // `overloaded` when the plugin has too many.
  Task<> subscribe(core::PluginId plugin, EventRequest request);
  void forget(const core::PluginId& plugin);
  Task<> stop() { return tasks_.stop(); }

 private:
  // How far a company's trail was delivered, and its change count at that time.
  struct Told {
    std::optional<core::EventId> last = {};
    std::uint64_t changes = 0;
    std::chrono::steady_clock::time_point looked_at = {};
  };

  Task<> pump();
  Task<> look();
  Task<> tell_news(core::CompanyId company);
  Task<std::vector<core::CompanyId>> companies();
  void tell(const core::Activity& happened);

  Services services_;
  asio::any_io_executor executor_;
  Deliver deliver_;
  std::map<core::PluginId, std::vector<EventRequest>> requests_;
  std::map<core::CompanyId, Told> told_;
  bool pumping_ = false;
  TaskGroup tasks_;
};

}  // namespace berth::engine
