// Company settings for plugins, and how plugins are doing.
#include "base/json/peek.hpp"
#include "core/config/provider_config.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/plugins/plugins.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "store/companies.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t validate_ms = 10'000;

Result<std::optional<core::ConfigSchema>> schema_of(const core::Plugin& plugin) {
  const bj::object* const found = object_in(plugin.manifest, "instanceConfigSchema");
  if (found == nullptr) return std::nullopt;
  BERTH_TRY(core::ConfigSchema schema, core::ConfigSchema::read(*found, "/instanceConfigSchema"));
  return schema;
}

// A plugin reads its secrets by reference, so a plain value in the config would be useless to it
// and visible to everyone.
Error plain_secret(const std::string& path) {
  return {Errc::unprocessable,
          "/configJson" + core::ConfigPath::parse(path).pointer() + ": must name a secret",
          "make one with 'berth secret create', and name it as {\"type\": \"secret_ref\", "
          "\"secretId\": ID}",
          {{"/configJson" + core::ConfigPath::parse(path).pointer(), "must name a secret"}}};
}

HealthCheck checked(std::string name, bool passed, std::optional<std::string> message = {}) {
  return {.name = std::move(name), .passed = passed, .message = std::move(message)};
}

}  // namespace

Result<bj::object> Plugins::checked_config(const core::Plugin& plugin, const bj::object& config,
                                           std::vector<core::BoundRef>& refs) const {
  BERTH_TRY(const auto schema, schema_of(plugin));
  if (!schema) {
    refs = core::refs_in(config);
    return config;
  }
  BERTH_TRY(bj::object applied, core::apply_schema(*schema, config, "/configJson"));
  const core::ConfigForStore stored = core::take_secrets(*schema, applied, {});
  if (!stored.values.empty()) {
    return std::unexpected(plain_secret(stored.values.front().path));
  }
  refs = stored.refs;
  return core::spell_out_refs(std::move(applied), refs);
}

Task<std::optional<core::PluginConfigRow>> Plugins::config(core::Call call, std::string name,
                                                           core::CompanyId company) {
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  using Found = std::optional<core::PluginConfigRow>;
  co_return co_await services_.store.read([&](store::Session& s) -> Result<Found> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    BERTH_TRY(auto found, store::find_plugin_config(s, row.value.id, company));
    return found ? Found{std::move(found->value)} : Found{};
  });
}

Task<core::PluginConfigRow> Plugins::set_config(core::Call call, std::string name,
                                                PluginConfigRequest wanted) {
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  const core::PluginId id = row.value.id;
  std::vector<core::BoundRef> refs;
  BERTH_CO_TRY(const bj::object config, checked_config(row.value, wanted.config_json, refs));
  const Time now = services_.clock.now();
  const core::PluginConfigRow fresh{.id = core::EventId::make(services_.random, now),
                                    .plugin_id = id,
                                    .company_id = wanted.company_id,
                                    .config_json = config,
                                    .created_at = now,
                                    .updated_at = now};
  bool is_new = false;
  const auto save = [&](store::Session& s) -> Result<core::PluginConfigRow> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), wanted.company_id));
    BERTH_TRY(auto saved, store::save_plugin_config(s, fresh));
    BERTH_DO(bind_refs(s, services_, wanted.company_id, core::SecretTarget::plugin,
                       plugin_target_id(id, wanted.company_id), BindingPart::config, refs));
    BERTH_DO(
        record(s, services_, call,
               {wanted.company_id,
                "plugin.config_updated",
                "plugin",
                id.str(),
                {{"pluginKey", row.value.plugin_key}, {"configTopLevelKeyCount", config.size()}}}));
    is_new = true;
    return std::move(saved.value);
  };
  BERTH_CO_TRY(core::PluginConfigRow saved, co_await idempotent_write(services_, call, save));
  services_.feed.changed(wanted.company_id);
  // A retried request changes nothing, not even settings made after it.
  if (place_ != nullptr && is_new) {
    BERTH_CO_DO(co_await place_->host.config_changed(id, wanted.company_id, config));
  }
  co_return saved;
}

Task<std::optional<PluginView>> Plugins::answered(const core::Call& call) {
  if (!call.once) co_return std::optional<PluginView>{};
  BERTH_CO_TRY(
      const std::optional<std::string> id,
      co_await services_.store.read([&](store::Session& s) -> Result<std::optional<std::string>> {
        BERTH_TRY(const auto kept, idempotent_write_detail::find(s, services_, call));
        if (!kept) return std::nullopt;
        return std::string{kept->reveal()};
      }));
  if (!id) co_return std::optional<PluginView>{};
  BERTH_CO_TRY(const Row row, co_await find(*id));
  co_return view(call.who, row.value);
}

Result<> Plugins::keep_once(store::Session& session, const core::Call& call,
                            const core::PluginId& id) {
  if (!call.once) return {};
  BERTH_TRY(const auto kept, idempotent_write_detail::find(session, services_, call));
  return kept ? Result<>{} : idempotent_write_detail::keep(session, services_, call, id.str());
}

Task<ConfigTest> Plugins::test_config(core::Call call, std::string name,
                                      PluginConfigRequest wanted) {
  BERTH_CO_DO(place());
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  BERTH_CO_DO(co_await services_.store.read([&](store::Session& s) {
    return store::expect_company(s, core::Reach::of(call.who), wanted.company_id);
  }));
  std::vector<core::BoundRef> refs;
  BERTH_CO_TRY(bj::object config, checked_config(row.value, wanted.config_json, refs));
  const auto status = place_->host.status(row.value.id);
  if (!status || status->state != plugins::WorkerState::running) {
    co_return fail(Errc::plugin_not_ready, "Plugin \"" + row.value.plugin_key + "\" is not running",
                   "enable it first");
  }
  if (!status->methods.contains("validateConfig")) {
    co_return ConfigTest{.supported = false,
                         .message = "the plugin has no test of its own; its schema holds"};
  }
  plugins::PluginCall asked{.method = "validateConfig",
                            .params = {{"config", std::move(config)}},
                            .deadline = std::chrono::milliseconds{validate_ms}};
  const plugins::CallResult answer = co_await place_->host.call(row.value.id, std::move(asked));
  if (!answer) co_return std::unexpected(to_error(answer.error(), "validateConfig"));
  ConfigTest out{.supported = true};
  const bj::object* const said = answer->if_object();
  if (said == nullptr)
    co_return fail(Errc::plugin_protocol, "validateConfig: the answer is not an object");
  out.valid = is_true_in(*said, "ok");
  const bj::array* const errors = array_in(*said, "errors");
  if (errors != nullptr && !errors->empty() && errors->front().is_string()) {
    const bj::string& first = errors->front().get_string();
    out.message = place_->host.cleaned(row.value.id, {first.data(), first.size()});
  }
  co_return out;
}

Task<std::vector<core::PluginLogLine>> Plugins::logs(core::Call call, std::string name,
                                                     store::PluginLogFilter filter,
                                                     std::int64_t limit) {
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  co_return co_await services_.store.read([&](store::Session& s) {
    return store::list_plugin_logs(s, row.value.id, core::Reach::of(call.who), filter, limit);
  });
}

Task<PluginHealth> Plugins::health(core::Call call, std::string name) {
  BERTH_CO_TRY(const Row row, co_await find(std::move(name)));
  const core::Plugin& plugin = row.value;
  BERTH_CO_TRY(const std::int64_t held, co_await services_.store.read([&](store::Session& s) {
    return store::count_sandboxes_of(s, plugin.id, core::Reach::of(call.who));
  }));
  PluginHealth out{.plugin_id = plugin.id,
                   .status = plugin.status,
                   .last_error = shown_error(call.who, plugin),
                   .sandboxes = held};
  out.checks.push_back(checked("registry", true));
  const bool ready = plugin.status == core::PluginState::ready ||
                     plugin.status == core::PluginState::upgrade_pending;
  out.checks.push_back(checked("status", ready, std::string{name_of(plugin.status)}));
  if (out.last_error) out.checks.push_back(checked("error_state", false, out.last_error));
  const auto status = place_ != nullptr ? place_->host.status(plugin.id) : std::nullopt;
  if (status) {
    out.worker = WorkerView{.status = status->state,
                            .pid = call.who.is_instance_admin() ? status->pid : std::nullopt,
                            .consecutive_crashes = status->crashes,
                            .running_since = status->running_since,
                            .methods = {status->methods.begin(), status->methods.end()}};
    const bool runs = status->state == plugins::WorkerState::running;
    Result<> answered =
        fail(Errc::plugin_not_ready, "the worker is " + std::string{name_of(status->state)});
    if (runs) {
      const Result<bj::object> said = co_await place_->host.health(plugin.id);
      answered = said ? Result<>{} : Result<>{std::unexpected(said.error())};
      if (!said && !call.who.is_instance_admin()) {
        answered = fail(said.error().code, "the worker does not say that it is well");
      }
    }
    out.checks.push_back(
        checked("worker", answered.has_value(),
                answered ? std::nullopt : std::optional{answered.error().message}));
  } else {
    out.checks.push_back(checked("worker", false, "there is no worker"));
  }
  out.healthy = std::ranges::all_of(out.checks, &HealthCheck::passed);
  co_return out;
}

}  // namespace berth::engine
