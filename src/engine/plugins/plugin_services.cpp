#include "engine/plugins/plugin_services.hpp"

#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "core/config/bindings.hpp"
#include "engine/journal.hpp"
#include "engine/plugins/plugin_requests.hpp"
#include "engine/retry.hpp"
#include "store/plugins.hpp"
#include "store/secrets.hpp"

namespace berth::engine {
namespace {

using core::PluginEvent;
using core::PluginState;
using plugins::WorkerState;

constexpr std::int64_t entities_page_max = 500;
constexpr std::size_t lines_at_a_time = 200;
constexpr std::size_t key_bytes_max = 512;
constexpr std::chrono::milliseconds settle_pause{5};
constexpr int settle_tries_max =
    1'000;  // after that, the store is unreachable and pending lines are written later

template <class T>
Result<T> params_as(const bj::object& params) {
  return decode<T>(params, UnknownKeys::ignore);
}

std::string text_in(const bj::object& params, std::string_view key) {
  return peek<std::string>(params, key).value_or("");
}

Result<core::CompanyId> company_of(const plugins::RequestScope& scope) {
  if (scope.company_id) return *scope.company_id;
  return fail(Errc::forbidden, "company context is required");
}

// The gate has checked the call's company; a company's value is never written under another
// company's id.
Result<> check_scope(const plugins::RequestScope& scope, core::PluginScope kind,
                     const std::optional<std::string>& id) {
  if (kind != core::PluginScope::company) return {};
  if (!id || id->empty()) return fail(Errc::forbidden, "a company's scope needs its id");
  if (scope.company_id && scope.company_id->str() == *id) return {};
  return fail(Errc::forbidden, "the scope of company \"" + *id + "\" is not that of this call");
}

// Agents and runs also belong to a company.
Result<> expect_own(store::Session& session, const plugins::RequestScope& scope,
                    core::PluginScope kind, const std::string& id) {
  if (!scope.company_id) return {};
  BERTH_TRY(const auto owner, store::owner_of_scope(session, kind, id));
  if (!owner || *owner == *scope.company_id) return {};
  return fail(Errc::forbidden, "the scope of " + std::string{name_of(kind)} + " \"" + id +
                                   "\" is not that of this call");
}

Result<core::PluginStateKey> state_key_of(const plugins::RequestScope& scope,
                                          const bj::object& params) {
  BERTH_TRY(StateRequest wanted, params_as<StateRequest>(params));
  BERTH_DO(check_scope(scope, wanted.scope_kind, wanted.scope_id));
  core::PluginStateKey key{.scope_kind = wanted.scope_kind,
                           .scope_id = wanted.scope_id.value_or(""),
                           .state_key = std::move(wanted.state_key)};
  if (std::string given = text_in(params, "namespace"); !given.empty()) {
    key.name_space = std::move(given);
  }
  for (const std::string* part : {&key.scope_id, &key.name_space, &key.state_key}) {
    if (part->size() > key_bytes_max) {
      return fail(Errc::validation_failed, "a key of a state has at most 512 bytes");
    }
  }
  return key;
}

Result<> check_size(const bj::value& value, std::size_t most) {
  if (encode_text(value).size() <= most) return {};
  return fail(Errc::body_too_large, "a value has at most " + std::to_string(most) + " bytes");
}

bj::value to_wire(const core::PluginEntity& entity) {
  bj::object out = encode(entity).as_object();
  out["data"] = out.at("document");
  for (const std::string_view ours : {"document", "pluginId", "companyId"}) out.erase(ours);
  return out;
}

core::Call scope_call(const plugins::RequestScope& scope) {
  return {.who = {.kind = core::CallerKind::system, .company_id = scope.company_id}};
}

bool is_down(WorkerState state) {
  return state == WorkerState::error || state == WorkerState::backing_off;
}

// The event that brings a row in line with its process; empty when it already agrees, or when the
// operator's choice takes precedence.
std::optional<PluginEvent> event_for(WorkerState state, PluginState row) {
  const bool may_run = row == PluginState::installed || row == PluginState::error;
  if (state == WorkerState::running) {
    return may_run ? std::optional{PluginEvent::activated} : std::nullopt;
  }
  const bool may_fail = row == PluginState::installed || row == PluginState::ready;
  return is_down(state) && may_fail ? std::optional{PluginEvent::failed} : std::nullopt;
}

}  // namespace

std::string plugin_target_id(const core::PluginId& plugin, const core::CompanyId& company) {
  return plugin.str() + ":" + company.str();
}

PluginServices::PluginServices(Services services, asio::any_io_executor executor,
                               egress::Resolver& resolver, std::vector<egress::Range> fetch_allowed,
                               PluginAllowance allowance)
    : services_(services),
      executor_(executor),
      outbound_(executor, resolver, std::move(fetch_allowed)),
      events_(services, executor),
      allowance_(allowance),
      tasks_(std::move(executor)) {}

const std::map<std::string, PluginServices::Method, std::less<>>& PluginServices::methods() {
  static const std::map<std::string, Method, std::less<>> table = {
      {"config.get", &PluginServices::get_config},
      {"state.get", &PluginServices::get_state},
      {"state.set", &PluginServices::set_state},
      {"state.delete", &PluginServices::delete_state},
      {"entities.upsert", &PluginServices::upsert_entity},
      {"entities.list", &PluginServices::list_entities},
      {"secrets.resolve", &PluginServices::resolve_secret},
      {"activity.log", &PluginServices::log_activity},
      {"events.emit", &PluginServices::emit_event},
      {"events.subscribe", &PluginServices::subscribe},
      {"metrics.write", &PluginServices::write_metric},
      {"log", &PluginServices::write_log},
      {"http.fetch", &PluginServices::fetch},
  };
  return table;
}

std::vector<std::string> PluginServices::method_names() {
  std::vector<std::string> names;
  for (const auto& [name, method] : methods()) names.push_back(name);
  return names;
}

bool PluginServices::has(std::string_view method) const {
  return methods().contains(method);
}

Task<bj::value> PluginServices::answer(plugins::RequestScope scope, std::string method,
                                       bj::object params) {
  const auto found = methods().find(method);
  if (found == methods().end()) {
    co_return fail(Errc::route_not_found, "there is no method " + in_quotes(method));
  }
  BERTH_CO_DO(expect_calm(scope, method));
  co_return co_await (this->*found->second)(std::move(scope), std::move(params));
}

Result<> PluginServices::take(const Scope& scope, std::string_view what, const core::Rate& rate) {
  const std::string company = scope.company_id ? scope.company_id->str() : std::string{};
  const std::string key = scope.plugin_id.str() + ":" + company + ":" + std::string{what};
  const auto verdict = writes_.take(key, rate, services_.clock.steady());
  if (verdict == core::RateVerdict::granted) return {};
  if (verdict == core::RateVerdict::first_refusal) {
    log::warn("plugin.limited", {{"plugin", scope.plugin_id}, {"what", std::string{what}}});
    log(scope.plugin_id,
        {.level = plugins::LogLevel::warn,
         .source = "host",
         .message = "the plugin writes " + std::string{what} + " too often; some are refused",
         .company_id = scope.company_id});
  }
  return fail(Errc::rate_limited,
              "plugin " + scope.plugin_key + " writes " + std::string{what} + " too often",
              "wait before the next one, and write less");
}

Result<> PluginServices::expect_calm(const Scope& scope, std::string_view method) {
  struct Written {
    std::string_view method;
    std::string_view what;
    const core::Rate& rate;
  };
  const Written all[] = {{"activity.log", "activities and events", allowance_.kept},
                         {"events.emit", "activities and events", allowance_.kept},
                         {"state.set", "state and entities", allowance_.replaced},
                         {"state.delete", "state and entities", allowance_.replaced},
                         {"entities.upsert", "state and entities", allowance_.replaced},
                         {"metrics.write", "log lines and metrics", allowance_.lines},
                         {"log", "log lines and metrics", allowance_.lines}};
  const auto* const found = std::ranges::find(all, method, &Written::method);
  if (found == std::end(all)) return {};
  BERTH_DO(take(scope, found->what, found->rate));
  if (reserve_.has_room()) return {};
  return fail(Errc::store_full,
              "The disk of the server is down to its reserve, which plugins do not write to",
              "let an operator make room on the disk of the home folder");
}

// Charges per piece, so that a few large values cost as much as many small ones.
Result<> PluginServices::expect_small(const Scope& scope, const bj::value& details) {
  const std::size_t bytes = encode_text(details).size();
  if (bytes > allowance_.kept_bytes_max) return check_size(details, allowance_.kept_bytes_max);
  for (std::size_t paid = 0; paid < bytes; paid += allowance_.piece_bytes) {
    BERTH_DO(take(scope, "bytes of activities and events", allowance_.pieces));
  }
  return {};
}

Task<std::vector<plugins::CompanyConfig>> PluginServices::configs(core::PluginId plugin) {
  BERTH_CO_TRY(const std::vector<core::PluginConfigRow> rows,
               co_await services_.store.read(
                   [&](store::Session& s) { return store::list_plugin_configs(s, plugin); }));
  std::vector<plugins::CompanyConfig> out;
  for (const core::PluginConfigRow& row : rows) out.push_back({row.company_id, row.config_json});
  co_return out;
}

Task<bj::value> PluginServices::get_config(Scope scope, bj::object /*params*/) {
  BERTH_CO_TRY(const core::CompanyId company, company_of(scope));
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_plugin_config(s, scope.plugin_id, company);
  }));
  co_return row ? bj::value(row->value.config_json) : bj::value(bj::object{});
}

Task<bj::value> PluginServices::get_state(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::PluginStateKey key, state_key_of(scope, params));
  using Found = std::optional<bj::value>;
  BERTH_CO_TRY(const Found found,
               co_await services_.store.read([&](store::Session& s) -> Result<Found> {
                 BERTH_DO(expect_own(s, scope, key.scope_kind, key.scope_id));
                 return store::find_plugin_state(s, scope.plugin_id, key);
               }));
  co_return found.value_or(nullptr);
}

Task<bj::value> PluginServices::set_state(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::PluginStateKey key, state_key_of(scope, params));
  const bj::value value = peek<bj::value>(params, "value").value_or(nullptr);
  BERTH_CO_DO(check_size(value, allowance_.value_bytes_max));
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(expect_own(s, scope, key.scope_kind, key.scope_id));
    return store::save_plugin_state(s, scope.plugin_id, key, value, allowance_.state_values_max,
                                    services_.clock.now());
  }));
  co_return nullptr;
}

Task<bj::value> PluginServices::delete_state(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::PluginStateKey key, state_key_of(scope, params));
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) -> Result<> {
    BERTH_DO(expect_own(s, scope, key.scope_kind, key.scope_id));
    return store::delete_plugin_state(s, scope.plugin_id, key);
  }));
  co_return nullptr;
}

Task<bj::value> PluginServices::upsert_entity(Scope scope, bj::object params) {
  BERTH_CO_TRY(EntityRequest wanted, params_as<EntityRequest>(params));
  BERTH_CO_DO(check_scope(scope, wanted.scope_kind, wanted.scope_id));
  BERTH_CO_DO(check_size(wanted.data, allowance_.value_bytes_max));
  const Time now = services_.clock.now();
  core::PluginEntity entity{.id = core::EventId::make(services_.random, now),
                            .plugin_id = scope.plugin_id,
                            .entity_type = std::move(wanted.entity_type),
                            .scope_kind = wanted.scope_kind,
                            .scope_id = std::move(wanted.scope_id),
                            .external_id = std::move(wanted.external_id),
                            .title = std::move(wanted.title),
                            .status = std::move(wanted.status),
                            .document = std::move(wanted.data),
                            .created_at = now,
                            .updated_at = now};
  if (entity.scope_kind != core::PluginScope::instance) entity.company_id = scope.company_id;
  using Kept = core::PluginEntity;
  BERTH_CO_TRY(const Kept kept,
               co_await services_.store.write([&](store::Session& s) -> Result<Kept> {
                 BERTH_DO(expect_own(s, scope, entity.scope_kind, entity.scope_id.value_or("")));
                 return store::save_plugin_entity(s, entity, allowance_.entities_max);
               }));
  co_return to_wire(kept);
}

Task<bj::value> PluginServices::list_entities(Scope scope, bj::object params) {
  BERTH_CO_TRY(const EntityQuery wanted, params_as<EntityQuery>(params));
  if (wanted.scope_kind) BERTH_CO_DO(check_scope(scope, *wanted.scope_kind, wanted.scope_id));
  const store::EntityFilter filter{.company_id = scope.company_id,
                                   .entity_type = wanted.entity_type,
                                   .scope_kind = wanted.scope_kind,
                                   .scope_id = wanted.scope_id,
                                   .external_id = wanted.external_id};
  const std::int64_t limit =
      std::clamp<std::int64_t>(wanted.limit.value_or(100), 1, entities_page_max);
  const std::int64_t offset = std::max<std::int64_t>(wanted.offset.value_or(0), 0);
  using Entities = std::vector<core::PluginEntity>;
  BERTH_CO_TRY(const Entities rows,
               co_await services_.store.read([&](store::Session& s) -> Result<Entities> {
                 if (wanted.scope_kind) {
                   BERTH_DO(expect_own(s, scope, *wanted.scope_kind, wanted.scope_id.value_or("")));
                 }
                 return store::list_plugin_entities(s, scope.plugin_id, filter, limit, offset);
               }));
  bj::array out;
  for (const core::PluginEntity& entity : rows) out.push_back(to_wire(entity));
  co_return out;
}

Result<> PluginServices::count_secret_read(const Scope& scope) {
  const std::int64_t now = services_.clock.now().ms;
  std::deque<std::int64_t>& reads =
      secret_reads_[plugin_target_id(scope.plugin_id, *scope.company_id)];
  while (!reads.empty() && reads.front() + allowance_.secret_window_ms <= now) reads.pop_front();
  if (reads.size() >= allowance_.secret_reads_max) {
    return fail(Errc::overloaded, "secrets.resolve was called too often; try again in a minute");
  }
  reads.push_back(now);
  return {};
}

Task<bj::value> PluginServices::resolve_secret(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::CompanyId company, company_of(scope));
  JsonIssues issues;
  const auto given = peek<bj::value>(params, "secretRef");
  std::optional<core::SecretRef> ref;
  if (given && given->is_object()) {
    ref = core::parse_secret_ref(*given, JsonAt{}, issues);
  }
  if (!ref) {
    co_return fail(Errc::validation_failed,
                   "secretRef must be a binding object: {\"type\": \"secret_ref\", \"secretId\"}");
  }
  BERTH_CO_DO(count_secret_read(scope));
  const std::string target = plugin_target_id(scope.plugin_id, company);
  std::string path = text_in(params, "configPath");
  if (path.empty()) {
    const auto look = [&](store::Session& s) {
      return store::bindings_of_target(s, core::SecretTarget::plugin, target);
    };
    BERTH_CO_TRY(const auto bindings, co_await services_.store.read(look));
    std::vector<std::string> paths;
    for (const core::SecretBinding& binding : bindings) {
      if (binding.secret_id == ref->secret_id) paths.push_back(binding.config_path);
    }
    if (paths.size() != 1) {
      co_return fail(Errc::binding_missing,
                     paths.empty() ? "the secret is not bound to this plugin"
                                   : "the secret is bound at several places; send configPath");
    }
    path = paths.front();
  }
  SecretRead read{.company_id = company,
                  .secret_id = ref->secret_id,
                  .target_type = core::SecretTarget::plugin,
                  .target_id = target,
                  .config_path = std::move(path)};
  BERTH_CO_TRY(const ResolvedSecret found,
               co_await secrets_.resolve(scope_call(scope), std::move(read)));
  co_return bj::value(bj::string(found.value.reveal()));
}

Task<bj::value> PluginServices::log_activity(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::CompanyId company, company_of(scope));
  BERTH_CO_TRY(const ActivityRequest wanted, params_as<ActivityRequest>(params));
  bj::object details{{"message", clipped(wanted.message, allowance_.message_bytes_max)},
                     {"pluginKey", scope.plugin_key}};
  if (wanted.metadata) details["metadata"] = *wanted.metadata;
  BERTH_CO_DO(expect_small(scope, details));
  const std::string type = wanted.entity_type.value_or("plugin");
  const std::string id = wanted.entity_id.value_or(scope.plugin_id.str());
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) {
    return engine::record(s, services_, scope_call(scope),
                          {company, "plugin.logged", type, id, details});
  }));
  services_.feed.changed(company);
  co_return nullptr;
}

Task<bj::value> PluginServices::emit_event(Scope scope, bj::object params) {
  BERTH_CO_TRY(const core::CompanyId company, company_of(scope));
  const std::string name = text_in(params, "name");
  const bool clean =
      !name.empty() && name.size() <= key_bytes_max && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
      });
  if (!clean) {
    co_return fail(Errc::validation_failed, "an event has a name of a-z, 0-9, '.', '_' and '-'");
  }
  bj::object details{{"pluginKey", scope.plugin_key}};
  if (params.contains("payload")) details["payload"] = params.at("payload");
  BERTH_CO_DO(expect_small(scope, details));
  const std::string action = "plugin." + scope.plugin_key + "." + name;
  BERTH_CO_DO(co_await services_.store.write([&](store::Session& s) {
    return engine::record(s, services_, scope_call(scope),
                          {company, action, "plugin", scope.plugin_id.str(), details});
  }));
  services_.feed.changed(company);
  co_return nullptr;
}

Task<bj::value> PluginServices::subscribe(Scope scope, bj::object params) {
  BERTH_CO_TRY(EventRequest subscription, parse_event_request(params));
  if (subscription.company_id) {
    BERTH_CO_DO(check_scope(scope, core::PluginScope::company, subscription.company_id));
  }
  BERTH_CO_DO(co_await events_.subscribe(scope.plugin_id, std::move(subscription)));
  co_return nullptr;
}

Task<bj::value> PluginServices::write_metric(Scope scope, bj::object params) {
  const std::string name = text_in(params, "name");
  const auto value = peek<bj::value>(params, "value");
  if (name.empty() || !value || !value->is_number()) {
    co_return fail(Errc::validation_failed, "a metric has a name and a number");
  }
  bj::object meta{{"value", *value}};
  if (params.contains("tags")) meta["tags"] = params.at("tags");
  BERTH_CO_DO(check_size(meta, allowance_.message_bytes_max));
  const Time now = services_.clock.now();
  keep_line({.id = core::EventId::make(services_.random, now),
             .plugin_id = scope.plugin_id,
             .company_id = scope.company_id,
             .level = core::PluginLogLevel::metric,
             .message = name,
             .meta = std::move(meta),
             .created_at = now});
  co_return nullptr;
}

Task<bj::value> PluginServices::write_log(Scope scope, bj::object params) {
  const auto level = parse_name<plugins::LogLevel>(text_in(params, "level"));
  plugins::PluginLogLine line{.level = level.value_or(plugins::LogLevel::info),
                              .message = text_in(params, "message"),
                              .company_id = scope.company_id};
  line.meta = peek<bj::object>(params, "meta").value_or(bj::object{});
  log(scope.plugin_id, std::move(line));
  co_return nullptr;
}

Task<bj::value> PluginServices::fetch(Scope /*scope*/, bj::object params) {
  FetchRequest request{.url = text_in(params, "url")};
  if (const bj::object* const given = object_in(params, "init")) {
    BERTH_CO_TRY(FetchInit init, params_as<FetchInit>(*given));
    if (init.method) request.method = *std::move(init.method);
    if (init.headers) request.headers = *std::move(init.headers);
    if (init.body) request.body = *std::move(init.body);
  }
  BERTH_CO_TRY(const FetchAnswer answer, co_await outbound_.fetch(std::move(request)));
  co_return bj::object{{"status", answer.status},
                       {"statusText", answer.status_text},
                       {"headers", encode(answer.headers)},
                       {"body", as_utf8(answer.body)}};
}

void PluginServices::log(const core::PluginId& plugin, plugins::PluginLogLine line) {
  const Time now = services_.clock.now();
  bj::object meta = std::move(line.meta);
  if (line.source != "worker") meta["source"] = line.source;
  if (encode_text(meta).size() > allowance_.message_bytes_max) meta = {{"dropped", "too large"}};
  const std::string message = as_utf8(line.message);
  keep_line({.id = core::EventId::make(services_.random, now),
             .plugin_id = plugin,
             .company_id = std::move(line.company_id),
             .level = *parse_name<core::PluginLogLevel>(name_of(line.level)),
             .message = std::string{clipped(message, allowance_.message_bytes_max)},
             .meta = meta.empty() ? std::nullopt : std::optional{std::move(meta)},
             .created_at = now});
}

void PluginServices::keep_line(core::PluginLogLine line) {
  if (lines_.size() >= allowance_.lines_waiting_max) {
    lines_.pop_front();
    ++dropped_;
  }
  lines_.push_back(std::move(line));
  if (!std::exchange(recording_, true)) tasks_.start("plugin records", record());
}

void PluginServices::state_changed(const core::PluginId& plugin, WorkerState state,
                                   plugins::StateReason reason) {
  // The previous process's subscriptions ended with it.
  if (state != WorkerState::running) events_.forget(plugin);
  changes_.push_back({plugin, state, reason.text()});
  if (!std::exchange(recording_, true)) tasks_.start("plugin records", record());
}

Task<> PluginServices::stop() {
  BERTH_CO_DO(co_await events_.stop());
  co_return co_await tasks_.stop();
}

// One task writes all worker reports, so that rows change in the order of events.
Task<> PluginServices::record() {
  const struct Over {
    bool& flag;
    ~Over() { flag = false; }
  } over{recording_};
  while (!changes_.empty() || !lines_.empty()) {
    Result<> done;
    if (!changes_.empty()) {
      Change next = std::move(changes_.front());
      changes_.pop_front();
      done = co_await follow(std::move(next));
      if (listener_) listener_();
    } else {
      done = co_await write_lines();
    }
    if (!done && done.error().code == Errc::cancelled) co_return done;
    if (!done) log::warn("plugin.record_lost", {{"error", done.error().message}});
  }
  co_return Result<>{};
}

Task<> PluginServices::follow(Change change) {
  const auto move = [&](store::Session& s) -> Result<> {
    BERTH_TRY(auto row, store::find_plugin(s, change.plugin));
    const Time now = services_.clock.now();
    const auto event = event_for(change.state, row.value.status);
    if (event) {
      const bool failed = *event == PluginEvent::failed;
      BERTH_TRY(row, store::move_plugin(s, std::move(row), *event,
                                        failed ? std::optional{change.reason} : std::nullopt, now));
    } else if (is_down(change.state) && row.value.status == PluginState::error) {
      // The newest failure, because the first one may be fixed by now.
      row.value.last_error = change.reason;
      BERTH_TRY(row, store::update_plugin(s, std::move(row), now));
    }
    if (change.state != WorkerState::running) return {};
    return store::retry_teardowns_of(s, change.plugin, now);
  };
  const auto attempt = [&]() -> Task<> { return services_.store.write(move); };
  Result<> moved = co_await retry_during_outage(executor_, attempt);
  if (!moved && moved.error().code == Errc::conflict) moved = co_await attempt();
  // A plugin that was removed meanwhile has no row to update.
  if (!moved && moved.error().code == Errc::plugin_not_found) co_return Result<>{};
  co_return moved;
}

Task<> PluginServices::write_lines() {
  const std::size_t count = std::min(lines_.size(), lines_at_a_time);
  std::vector<core::PluginLogLine> some{lines_.begin(),
                                        lines_.begin() + static_cast<std::ptrdiff_t>(count)};
  lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(count));
  if (const std::size_t lost = std::exchange(dropped_, 0); lost > 0) {
    log::warn("plugin.lines_dropped", {{"lines", lost}});
  }
  co_return co_await services_.store.write([&](store::Session& s) -> Result<> {
    for (const core::PluginLogLine& line : some) BERTH_DO(store::insert_plugin_log(s, line));
    return {};
  });
}

Task<> PluginServices::settle() {
  for (int tries = 0; recording_ && tries < settle_tries_max; ++tries) {
    BERTH_CO_DO(co_await pause_for(executor_, settle_pause));
  }
  co_return Result<>{};
}

}  // namespace berth::engine
