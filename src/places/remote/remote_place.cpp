#include "places/remote/remote_place.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/provider_config.hpp"
#include "places/remote/remote_config.hpp"
#include "places/remote/sandbox_files.hpp"
#include "places/remote/site.hpp"

#include <algorithm>

namespace berth::places::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds default_deadline = 30s;
constexpr std::chrono::milliseconds probe_deadline = 120s;
constexpr std::chrono::milliseconds margin = 30s;  // of the call's deadline over the operation's

std::vector<std::string> texts_at(const bj::object& object, std::string_view key) {
  std::vector<std::string> all;
  const bj::array* list = array_in(object, key);
  if (list == nullptr) return all;
  for (const bj::value& entry : *list) {
    if (entry.is_string()) all.emplace_back(entry.get_string());
  }
  return all;
}

bj::object object_at(const bj::object& object, std::string_view key) {
  return peek<bj::object>(object, key).value_or(bj::object{});
}

bj::value or_null(const std::optional<std::string>& text) {
  return text ? bj::value(bj::string(*text)) : bj::value(nullptr);
}

// What the host knows about a lease besides the provider's metadata: see LeaseLifecycle::facts().
std::optional<std::string> fact_at(const PlaceRef& lease, std::string_view key) {
  return text_in(object_at(lease.metadata, "leaseFacts"), key);
}

// Whom a sandbox is for, as far as that is known.
bj::object requests_of(const PlaceRef& lease) {
  bj::object out{{"runId", lease.run_id ? lease.run_id->str() : lease.key.str()}};
  for (const char* key : {"agentId", "adapterType", "executionWorkspaceId"}) {
    if (const auto value = fact_at(lease, key)) out[key] = *value;
  }
  if (const auto until = fact_at(lease, "expiresAt")) out["requestedExpiresAt"] = *until;
  return out;
}

const SandboxFiles& files_of(const RemoteFiles& files) {
  return static_cast<const SandboxFiles&>(files);
}

// The values that are still plain text in a config, because it was not stored yet.
std::vector<Secret> plain_secrets_in(const DriverDeclaration& driver, const bj::object& config) {
  std::vector<Secret> out;
  const auto schema = core::ConfigSchema::read(driver.config_schema, "/configSchema");
  if (!schema) return out;
  core::ConfigForStore stored = core::take_secrets(*schema, config, {});
  for (core::BoundValue& one : stored.values) out.push_back(std::move(one.value));
  return out;
}

std::unexpected<Error> wrong_answer(const std::string& method, const std::string& why) {
  return fail(Errc::plugin_protocol, method + ": " + why, "report it to the author of the plugin");
}

// Both are kept with the lease, shown in lists, and sent back with every call for it.
constexpr std::size_t id_bytes_max = 1024;
constexpr std::size_t metadata_bytes_max = std::size_t{256} << 10;

std::optional<std::string> short_id_in(const bj::object& answer) {
  std::optional<std::string> id = text_in(answer, "providerLeaseId");
  if (id && (id->empty() || id->size() > id_bytes_max)) id.reset();
  return id;
}

Result<> check_size(const bj::object& answer) {
  if (text_in(answer, "providerLeaseId").value_or("").size() > id_bytes_max) {
    return wrong_answer("environmentAcquireLease", "the providerLeaseId has more than " +
                                                       std::to_string(id_bytes_max) + " bytes");
  }
  if (encode_text(object_at(answer, "metadata")).size() > metadata_bytes_max) {
    return wrong_answer(
        "environmentAcquireLease",
        "the metadata has more than " + std::to_string(metadata_bytes_max) + " bytes");
  }
  return {};
}

// How a lease's row names what made it.
std::string provider_name(Addressing addressing, const bj::object& config) {
  if (addressing == Addressing::provider_key) return core::provider_of(config);
  const Result<core::PluginConfig> named = core::parse_plugin_config(config);
  return named ? "plugin:" + named->plugin_key + ":" + named->driver_key : "plugin";
}

Acquired acquired_from(RemoteLease lease, std::string provider) {
  return {.provider = std::move(provider),
          .provider_lease_id = std::move(lease.provider_lease_id),
          .metadata = std::move(lease.metadata),
          .expires_at = lease.expires_at};
}

ProbeStep step_of(const bj::object& diagnostic) {
  return {.name = text_in(diagnostic, "code").value_or("provider"),
          .ok = text_in(diagnostic, "severity") != "error",
          .message = as_utf8(text_in(diagnostic, "message").value_or("")),
          .code = text_in(diagnostic, "code")};
}

}  // namespace

RemotePlace::RemotePlace(Host& host, Addressing addressing)
    : host_(host),
      addressing_(addressing),
      files_(std::make_unique<SandboxFiles>(*this)),
      tasks_(host.executor()) {}

RemotePlace::~RemotePlace() = default;

Result<DriverPlace> RemotePlace::find(const bj::object& config, const bj::object& metadata) const {
  std::string driver_key;
  std::string plugin_key;
  if (addressing_ == Addressing::provider_key) {
    driver_key = core::provider_of(config);
  } else {
    BERTH_TRY(const core::PluginConfig named, core::parse_plugin_config(config));
    driver_key = named.driver_key;
    plugin_key = named.plugin_key;
  }
  // Only the plugin that made the sandbox is asked about it.
  if (const auto pinned = text_in(metadata, "pluginId")) {
    BERTH_TRY(const core::PluginId id, core::PluginId::parse(*pinned));
    return host_.find_driver(id, text_in(metadata, "provider").value_or(driver_key));
  }
  return plugin_key.empty() ? host_.find_provider(driver_key)
                            : host_.find_driver(plugin_key, driver_key);
}

auto RemotePlace::place_of(const PlaceRef& lease) const -> Task<Site> {
  BERTH_CO_TRY(DriverPlace driver, find(lease.config, lease.metadata));
  const core::PluginId id = driver.plugin_id;
  BERTH_CO_DO(co_await host_.ready(id));
  Site place{.plugin = host_.find(id), .driver = std::move(driver)};
  if (!place.plugin) co_return fail(Errc::plugin_not_found, "plugin " + id.str() + " is gone");
  place.secrets = place.plugin->given().hold(values_of(lease.secrets));
  const std::optional<bj::object> recorded = stored_config_of(lease.metadata);
  if (addressing_ == Addressing::provider_key) {
    place.stored_config = recorded.value_or(lease.config);
    place.config = with_secrets(place.stored_config, lease.secrets);
  } else {
    BERTH_CO_TRY(const core::PluginConfig named, core::parse_plugin_config(lease.config));
    place.stored_config = recorded.value_or(named.driver_config);
    bj::object around{{"driverConfig", place.stored_config}};
    around = with_secrets(std::move(around), lease.secrets);
    place.config = around["driverConfig"].get_object();
  }
  place.config = config_for_worker(std::move(place.config));
  place.base = {
      {"driverKey", place.driver.driver->driver_key},
      {"companyId", lease.company_id ? bj::value(lease.company_id->str()) : bj::value(nullptr)},
      {"environmentId", lease.environment_id ? lease.environment_id->str() : lease.key.str()},
      {"issueId", or_null(fact_at(lease, "issueId"))},
      {"config", place.config}};
  bj::object metadata = provider_metadata_of(lease.metadata);
  // Some providers report a sandbox's folder only when its workspace is realized.
  const auto folder = files_of(*files_).folder_of(lease.key);
  if (folder && !metadata.contains("remoteCwd")) metadata["remoteCwd"] = *folder;
  place.lease = bj::object{{"providerLeaseId", or_null(lease.provider_lease_id)},
                           {"metadata", std::move(metadata)},
                           {"expiresAt", or_null(fact_at(lease, "expiresAt"))}};
  co_return place;
}

std::chrono::milliseconds RemotePlace::deadline_of(const Site& place) const {
  if (addressing_ == Addressing::plugin_key) return default_deadline;
  const auto longest =
      std::max(milliseconds_at(place.config, "timeoutMs").value_or(0ms),
               milliseconds_at(place.config, "bridgeRequestTimeoutMs").value_or(0ms));
  return longest > 0ms ? longest + margin : default_deadline;
}

Task<bj::value> RemotePlace::ask(const Site& place, std::string method, bj::object more) const {
  PluginCall call{.method = method, .params = place.base, .deadline = deadline_of(place)};
  if (method == "environmentProbe") call.deadline = probe_deadline;
  for (auto& entry : more) call.params.insert_or_assign(entry.key(), std::move(entry.value()));
  CallResult answer = co_await place.plugin->call(std::move(call));
  if (answer) co_return *std::move(answer);
  co_return std::unexpected(to_error(answer.error(), place.driver.plugin_key + ": " + method));
}

Task<bj::object> RemotePlace::ask_object(const PlaceRef& lease, std::string method,
                                         bj::object more) const {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_TRY(bj::value answer, co_await ask(place, method, std::move(more)));
  if (answer.is_object()) co_return std::move(answer.get_object());
  co_return wrong_answer(method, "the answer is not an object");
}

Task<ConfigVerdict> RemotePlace::validate(bj::object config) {
  BERTH_CO_TRY(const DriverPlace driver, find(config, {}));
  BERTH_CO_DO(co_await host_.ready(driver.plugin_id));
  if (addressing_ == Addressing::plugin_key) config = object_at(config, "driverConfig");
  const std::shared_ptr<Supervisor> plugin = host_.find(driver.plugin_id);
  if (!plugin || !plugin->advertises("environmentValidateConfig")) {
    co_return ConfigVerdict{.ok = true};  // the plugin does not validate configs
  }
  GivenSecrets::Hold secrets = plugin->given().hold(plain_secrets_in(*driver.driver, config));
  PluginCall call{.method = "environmentValidateConfig",
                  .params = {{"driverKey", driver.driver->driver_key},
                             {"config", config_for_worker(std::move(config))}},
                  .secrets = std::move(secrets)};
  const CallResult answer = co_await plugin->call(std::move(call));
  if (!answer) {
    co_return std::unexpected(to_error(answer.error(), driver.plugin_key + ": validate config"));
  }
  const bj::object* object = answer->if_object();
  if (object == nullptr)
    co_return wrong_answer("environmentValidateConfig", "the answer is not an object");
  ConfigVerdict verdict{.ok = is_true_in(*object, "ok"),
                        .errors = texts_at(*object, "errors"),
                        .warnings = texts_at(*object, "warnings")};
  for (std::vector<std::string>* const words : {&verdict.errors, &verdict.warnings}) {
    for (std::string& one : *words) one = plugin->given().clean(one);
  }
  verdict.normalized = peek<bj::object>(*object, "normalizedConfig");
  co_return verdict;
}

Task<Verdict> RemotePlace::verdict_on(const PlaceRef& lease) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_TRY(bj::value answer, co_await ask(place, "environmentProbe", {}));
  answer = without_secrets(std::move(answer), lease.secrets);
  answer = place.plugin->given().clean_json(answer);  // secrets of other calls
  const bj::object* object = answer.if_object();
  if (object == nullptr) co_return wrong_answer("environmentProbe", "the answer is not an object");
  Verdict verdict{.ok = is_true_in(*object, "ok"),
                  .summary = text_in(*object, "summary").value_or(""),
                  .details = object_at(*object, "metadata")};
  if (verdict.summary.empty()) {
    verdict.summary = "Sandbox provider \"" + place.driver.driver->driver_key +
                      (verdict.ok ? "\" is ready." : "\" is not ready.");
  }
  // Clients of other makes look for what the provider said under these names.
  bj::object metadata = verdict.details;
  verdict.details["metadata"] = std::move(metadata);
  verdict.details["pluginKey"] = place.driver.plugin_key;
  verdict.details["diagnostics"] = bj::array{};
  const bj::array* diagnostics = array_in(*object, "diagnostics");
  if (diagnostics == nullptr) co_return verdict;
  verdict.details["diagnostics"] = *diagnostics;
  for (const bj::value& one : *diagnostics) {
    if (one.is_object()) verdict.steps.push_back(step_of(one.get_object()));
  }
  co_return verdict;
}

Task<ProbeReport> RemotePlace::probe(const AcquireRequest& request) {
  ProbeReport report{.driver = addressing_ == Addressing::provider_key ? core::DriverKind::sandbox
                                                                       : core::DriverKind::plugin};
  const auto start = std::chrono::steady_clock::now();
  Result<Verdict> verdict = co_await verdict_on(request.lease);
  if (!verdict) {
    const Error& why = verdict.error();
    report.summary = why.message;
    report.steps.push_back({.name = "plugin",
                            .message = why.message,
                            .code = std::string{name_of(why.code)},
                            .remedy = why.remedy});
    co_return report;
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  report.ok = verdict->ok;
  report.summary = verdict->summary;
  report.details = std::move(verdict->details);
  report.steps.push_back({.name = "provider",
                          .ok = verdict->ok,
                          .duration_ms = took.count(),
                          .message = verdict->summary});
  for (ProbeStep& step : verdict->steps) report.steps.push_back(std::move(step));
  co_return report;
}

Task<> RemotePlace::check_config(const bj::object& /*config*/) {
  co_return Result<>{};
}

Task<Acquired> RemotePlace::acquire(const AcquireRequest& request) {
  const std::string provider = provider_name(addressing_, request.lease.config);
  if (request.setup) {
    SetupStart start{.session_id = request.setup->session_id.str(),
                     .source_ref = request.setup->source_ref,
                     .expires_at = request.setup->expires_at};
    if (request.setup->source_kind) start.source_kind = name_of(*request.setup->source_kind);
    BERTH_CO_TRY(RemoteLease opened, co_await open_setup(request.lease, std::move(start)));
    co_return acquired_from(std::move(opened), provider);
  }
  if (request.reusable_id) {
    const std::string id = *request.reusable_id;
    Result<std::optional<RemoteLease>> resumed = co_await resume(request.lease, id);
    const bool is_back = resumed && *resumed;
    if (is_back && (*resumed)->provider_lease_id == id) {
      Acquired same = acquired_from(**std::move(resumed), provider);
      same.resumed = true;
      co_return same;
    }
    // A sandbox that cannot be resumed may still be running, and this server would lose track of
    // it.
    PlaceRef old = request.lease.clone();
    old.provider_lease_id = id;
    BERTH_CO_DO(co_await destroy_lease(old));
    if (is_back) co_return acquired_from(**std::move(resumed), provider);
  }
  BERTH_CO_TRY(RemoteLease fresh, co_await make_lease(request.lease));
  co_return acquired_from(std::move(fresh), provider);
}

Task<> RemotePlace::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  BERTH_CO_DO(co_await release_lease(lease));
  co_return Result<>{};
}

Task<> RemotePlace::destroy(const PlaceRef& lease) {
  BERTH_CO_DO(co_await destroy_lease(lease));
  co_return Result<>{};
}

Task<std::vector<PlaceKey>> RemotePlace::held() {
  co_return std::vector<PlaceKey>{};
}

Task<RemoteLease> RemotePlace::lease_from(const Site& place, const PlaceRef& lease,
                                          bj::value answer) const {
  answer = without_secrets(std::move(answer), lease.secrets);
  const bj::object* object = answer.if_object();
  if (object == nullptr)
    co_return wrong_answer("environmentAcquireLease", "the answer is not an object");
  const bool is_sandbox = addressing_ == Addressing::provider_key;
  RemoteLease out{.provider_lease_id = text_in(*object, "providerLeaseId")};
  if (out.provider_lease_id && out.provider_lease_id->empty()) out.provider_lease_id.reset();
  if (is_sandbox && !out.provider_lease_id) {
    co_return wrong_answer("environmentAcquireLease", "the answer has no providerLeaseId");
  }
  BERTH_CO_DO(check_size(*object));
  out.metadata = lease_metadata({.driver = is_sandbox ? "sandbox" : "plugin",
                                 .driver_key = place.driver.driver->driver_key,
                                 .plugin_id = place.driver.plugin_id.str(),
                                 .plugin_key = place.driver.plugin_key},
                                place.stored_config, object_at(*object, "metadata"));
  if (const auto expires = text_in(*object, "expiresAt")) {
    if (const Result<Time> at = parse_iso8601(*expires)) out.expires_at = *at;
  }
  co_return out;
}

Task<RemoteLease> RemotePlace::make_lease(const PlaceRef& lease, AcquireFacts facts) {
  BERTH_CO_TRY(Site place, co_await place_of(lease));
  // A provider that keeps a sandbox although it is never asked to resume it would leave one behind
  // with each run.
  if (!may_reuse(lease.config)) {
    for (bj::object* config : {&place.config, &place.stored_config}) {
      if (config->contains("reuseLease")) (*config)["reuseLease"] = false;
    }
    place.base["config"] = place.config;
  }
  bj::object more = requests_of(lease);
  const auto add = [&](const char* key, const std::optional<std::string>& value) {
    if (value) more[key] = *value;
  };
  add("workspaceMode", facts.workspace_mode);
  add("requestedCwd", facts.requested_cwd);
  add("adapterType", facts.adapter_type);
  if (facts.agent_id) more["agentId"] = facts.agent_id->str();
  if (facts.execution_workspace_id) {
    more["executionWorkspaceId"] = facts.execution_workspace_id->str();
  }
  if (facts.requested_expires_at) {
    more["requestedExpiresAt"] = to_iso8601(*facts.requested_expires_at);
  }
  BERTH_CO_TRY(bj::value answer, co_await ask(place, "environmentAcquireLease", std::move(more)));
  PlaceRef unwanted = lease.clone();
  if (answer.is_object()) unwanted.provider_lease_id = short_id_in(answer.get_object());
  Result<RemoteLease> made = co_await lease_from(place, lease, std::move(answer));
  if (!made) {
    // Its sandbox is there although the answer about it is refused.
    if (unwanted.provider_lease_id) BERTH_CO_DO(co_await destroy_lease(unwanted));
    co_return made;
  }
  if (!facts.requested_expires_at ||
      (made->expires_at && *made->expires_at <= *facts.requested_expires_at)) {
    co_return made;
  }
  // A provider that cannot guarantee the end of a lease is not given one that must end.
  unwanted.metadata = made->metadata;
  const auto destroyed = co_await destroy_lease(unwanted);
  co_return fail(Errc::lease_acquire_failed,
                 place.driver.plugin_key + ": the provider does not end leases by itself" +
                     (destroyed ? "" : ", and did not destroy it: " + destroyed.error().message));
}

Task<std::optional<RemoteLease>> RemotePlace::resume(const PlaceRef& lease,
                                                     std::string provider_lease_id) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  if (!may_reuse(lease.config)) co_return std::optional<RemoteLease>{};
  bj::object more = requests_of(lease);
  more["providerLeaseId"] = provider_lease_id;
  more["leaseMetadata"] = provider_metadata_of(lease.metadata);
  BERTH_CO_TRY(bj::value answer, co_await ask(place, "environmentResumeLease", std::move(more)));
  const bj::object* object = answer.if_object();
  if (object == nullptr || text_in(*object, "providerLeaseId").value_or("").empty()) {
    co_return std::optional<RemoteLease>{};
  }
  BERTH_CO_TRY(RemoteLease resumed, co_await lease_from(place, lease, std::move(answer)));
  co_return std::optional{std::move(resumed)};
}

Task<std::optional<Receipt>> RemotePlace::give_back(const Site& place, const PlaceRef& lease,
                                                    std::string method) {
  bj::object more{{"providerLeaseId", or_null(lease.provider_lease_id)},
                  {"leaseMetadata", provider_metadata_of(lease.metadata)}};
  if (place.plugin->dialect() == Dialect::c) more["cancelActiveWork"] = true;
  BERTH_CO_TRY(const bj::value answer, co_await ask(place, method, std::move(more)));
  const bj::object* object = answer.if_object();
  if (object == nullptr) co_return std::optional<Receipt>{};
  const auto id = text_in(*object, "providerLeaseId");
  const auto state = text_in(*object, "state");
  if (!id && !state) co_return std::optional<Receipt>{};
  if (id != lease.provider_lease_id || (state != "stopped" && state != "destroyed")) {
    co_return wrong_answer(method, "the receipt is for another sandbox, or says nothing known");
  }
  co_return Receipt{*id, *state};
}

Task<std::optional<Receipt>> RemotePlace::release_lease(const PlaceRef& lease) {
  BERTH_CO_DO(co_await end_live(lease));
  if (is_setup(lease.metadata)) {
    BERTH_CO_DO(co_await cancel_setup(lease, "it is over"));
    co_return std::optional<Receipt>{};
  }
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const bool can_release = place.plugin->advertises("environmentReleaseLease");
  BERTH_CO_TRY(
      std::optional<Receipt> receipt,
      co_await give_back(place, lease,
                         can_release ? "environmentReleaseLease" : "environmentDestroyLease"));
  BERTH_CO_DO(forget(lease));
  co_return receipt;
}

Task<std::optional<Receipt>> RemotePlace::destroy_lease(const PlaceRef& lease) {
  BERTH_CO_DO(co_await end_live(lease));
  if (is_setup(lease.metadata)) {
    BERTH_CO_DO(co_await cancel_setup(lease, "it is given up"));
    co_return std::optional<Receipt>{};
  }
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  BERTH_CO_TRY(std::optional<Receipt> receipt,
               co_await give_back(place, lease, "environmentDestroyLease"));
  BERTH_CO_DO(forget(lease));
  co_return receipt;
}

core::SandboxCapabilities RemotePlace::capabilities(const PlaceRef& lease,
                                                    core::LeasePolicy policy) const {
  const Result<DriverPlace> driver = find(lease.config, lease.metadata);
  const std::shared_ptr<Supervisor> plugin = driver ? host_.find(driver->plugin_id) : nullptr;
  if (!plugin) return {};
  const bj::object metadata = provider_metadata_of(lease.metadata);
  return core::effective_capabilities(
      plugin->status().methods, driver->driver->capabilities,
      {.policy = policy,
       .backend = text_in(metadata, "backend").value_or(""),
       .native_file_sync_unsupported = is_true_in(metadata, "nativeFileSyncUnsupported"),
       .config_unresolved = false});
}

bool RemotePlace::may_reuse(const bj::object& config) const {
  const Result<DriverPlace> driver = find(config, {});
  const std::shared_ptr<Supervisor> plugin = driver ? host_.find(driver->plugin_id) : nullptr;
  if (!plugin || driver->driver->capabilities.reusable_leases != true) return false;
  const bj::object own =
      addressing_ == Addressing::provider_key ? config : object_at(config, "driverConfig");
  return is_true_in(own, "reuseLease") && plugin->advertises("environmentResumeLease") &&
         plugin->advertises("environmentReleaseLease") &&
         plugin->advertises("environmentDestroyLease");
}

}  // namespace berth::places::remote
