#pragma once

#include "base/async/task_group.hpp"
#include "core/rate_limit.hpp"
#include "core/rows/plugin.hpp"
#include "engine/plugins/outbound_fetch.hpp"
#include "engine/plugins/plugin_events.hpp"
#include "engine/secrets/secrets.hpp"
#include "engine/services.hpp"
#include "engine/upkeep/disk_reserve.hpp"
#include "plugins/services.hpp"

#include <deque>
#include <functional>

namespace berth::engine {

// How much a plugin may store, and how often it may call.
struct PluginAllowance {
  std::int64_t state_values_max = 10'000;
  std::int64_t entities_max = 10'000;
  std::size_t value_bytes_max = std::size_t{1} << 20;
  std::size_t message_bytes_max = 8'192;
  std::size_t lines_waiting_max = 2'000;
  std::size_t secret_reads_max = 30;  // per company and plugin, in secret_window_ms
  std::int64_t secret_window_ms = 60'000;
  // Per plugin and company. Entries that accumulate (activities, events) have a lower rate than
  // values that are replaced (state, entities), and are also charged by size.
  core::Rate kept = {.burst = 120, .every = std::chrono::milliseconds{500}};
  core::Rate replaced = {.burst = 1'000, .every = std::chrono::milliseconds{50}};
  core::Rate lines = {.burst = 1'000, .every = std::chrono::milliseconds{100}};
  core::Rate pieces = {.burst = 1'024, .every = std::chrono::milliseconds{1'000}};
  std::size_t piece_bytes = 4'096;
  std::size_t kept_bytes_max = std::size_t{64} << 10;
};

// The target id that owns the bindings of a company's plugin config.
std::string plugin_target_id(const core::PluginId& plugin, const core::CompanyId& company);

// Serves workers' requests: their config, state, entities, secrets, log lines and requests to the
// internet. It also keeps a plugin's row in step with its process: only a running one is `ready`.
class PluginServices final : public plugins::HostServices {
 public:
  PluginServices(Services services, asio::any_io_executor executor, egress::Resolver& resolver,
                 std::vector<egress::Range> fetch_allowed = {}, PluginAllowance allowance = {});

  // Every supported method, in alphabetical order.
  static std::vector<std::string> method_names();
  bool has(std::string_view method) const override;
  Task<bj::value> answer(plugins::RequestScope scope, std::string method,
                         bj::object params) override;
  Task<std::vector<plugins::CompanyConfig>> configs(core::PluginId plugin) override;
  void log(const core::PluginId& plugin, plugins::PluginLogLine line) override;
  void state_changed(const core::PluginId& plugin, plugins::WorkerState state,
                     plugins::StateReason reason) override;

  // Worker writes must not use up this disk's reserve.
  void spare(DiskReserve reserve) { reserve_ = std::move(reserve); }
  // Called on the loop after the row was updated. One listener.
  void on_change(std::function<void()> listener) { listener_ = std::move(listener); }
  // Waits until every reported line and state is in the store, as long as the store responds.
  Task<> settle();
  Task<> stop();
  // How events are delivered to subscribed workers.
  void deliver_events_by(PluginEvents::Deliver deliver) { events_.deliver_by(std::move(deliver)); }

 private:
  using Scope = plugins::RequestScope;
  using Method = Task<bj::value> (PluginServices::*)(Scope, bj::object);
  static const std::map<std::string, Method, std::less<>>& methods();

  Task<bj::value> get_config(Scope scope, bj::object params);
  Task<bj::value> get_state(Scope scope, bj::object params);
  Task<bj::value> set_state(Scope scope, bj::object params);
  Task<bj::value> delete_state(Scope scope, bj::object params);
  Task<bj::value> upsert_entity(Scope scope, bj::object params);
  Task<bj::value> list_entities(Scope scope, bj::object params);
  Task<bj::value> resolve_secret(Scope scope, bj::object params);
  Task<bj::value> log_activity(Scope scope, bj::object params);
  Task<bj::value> emit_event(Scope scope, bj::object params);
  Task<bj::value> subscribe(Scope scope, bj::object params);
  Task<bj::value> write_metric(Scope scope, bj::object params);
  Task<bj::value> write_log(Scope scope, bj::object params);
  Task<bj::value> fetch(Scope scope, bj::object params);

  struct Change {
    core::PluginId plugin;
    plugins::WorkerState state;
    std::string reason;
  };

  void keep_line(core::PluginLogLine line);
  Result<> count_secret_read(const Scope& scope);
  // rate_limited or store_full, before any data from a worker is written.
  Result<> expect_calm(const Scope& scope, std::string_view method);
  Result<> expect_small(const Scope& scope, const bj::value& details);
  Result<> take(const Scope& scope, std::string_view what, const core::Rate& rate);
  Task<> record();
  Task<> follow(Change change);
  Task<> write_lines();

  Services services_;
  Secrets secrets_{services_};
  asio::any_io_executor executor_;
  OutboundFetch outbound_;
  PluginEvents events_;
  PluginAllowance allowance_;
  std::deque<core::PluginLogLine> lines_;
  std::size_t dropped_ = 0;
  std::deque<Change> changes_;
  bool recording_ = false;
  std::map<std::string, std::deque<std::int64_t>> secret_reads_;  // by plugin and company
  core::RateLimit writes_;
  DiskReserve reserve_;
  std::function<void()> listener_;
  TaskGroup tasks_;
};

}  // namespace berth::engine
