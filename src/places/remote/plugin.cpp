#include "places/remote/plugin.hpp"

#include "core/config/environment_config.hpp"
#include "places/remote/provider.hpp"

#include <chrono>

namespace berth::drivers {
namespace {

std::unexpected<Error> unavailable(const PlaceRef& lease) {
  const Result<core::PluginConfig> config = core::parse_plugin_config(lease.config);
  if (!config) return std::unexpected(config.error());
  return fail(Errc::provider_unavailable,
              "Plugin \"" + config->plugin_key + "\" with environment driver \"" +
                  config->driver_key + "\" is not installed or its worker is not running.",
              "install the plugin " + config->plugin_key + ", or choose another environment");
}

std::unexpected<Error> beyond_plugins(const PlaceRef& lease, const std::string& what) {
  return fail(Errc::execution_unsupported,
              "lease " + lease.lease_id.str() + ": the sandbox of a plugin cannot be " + what,
              "choose an environment of provider linux for that");
}

std::string provider_name(core::DriverKind kind, const PlaceRef& lease) {
  if (kind == core::DriverKind::sandbox) return core::provider_of(lease.config);
  const Result<core::PluginConfig> config = core::parse_plugin_config(lease.config);
  return config ? "plugin:" + config->plugin_key + ":" + config->driver_key : "plugin";
}

ProbeStep step_of(const Error& why) {
  return {.name = "plugin",
          .message = why.message,
          .code = std::string{name_of(why.code)},
          .remedy = why.remedy};
}

Acquired acquired_from(plugins::RemoteLease lease, std::string provider, bool resumed) {
  return {.provider = std::move(provider),
          .provider_lease_id = std::move(lease.provider_lease_id),
          .metadata = std::move(lease.metadata),
          .expires_at = lease.expires_at,
          .resumed = resumed};
}

}  // namespace

Task<ProbeReport> Plugin::probe(const AcquireRequest& request) {
  Result<providers::Verdict> verdict = unavailable(request.lease);
  const auto start = std::chrono::steady_clock::now();
  if (remote_ != nullptr) verdict = co_await remote_->probe(request.lease);
  if (!verdict) {
    const ProbeStep step = step_of(verdict.error());
    co_return ProbeReport{.driver = kind_, .summary = step.message, .steps = {step}};
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - start);
  ProbeReport report{.ok = verdict->ok,
                     .driver = kind_,
                     .summary = verdict->summary,
                     .details = std::move(verdict->details)};
  report.steps.push_back({.name = "provider",
                          .ok = verdict->ok,
                          .duration_ms = took.count(),
                          .message = verdict->summary});
  for (ProbeStep& step : verdict->steps) report.steps.push_back(std::move(step));
  co_return report;
}

Task<Acquired> Plugin::acquire(const AcquireRequest& request) {
  if (remote_ == nullptr) co_return unavailable(request.lease);
  const std::string provider = provider_name(kind_, request.lease);
  if (request.setup) {
    plugins::SetupStart start{.session_id = request.setup->session_id.str(),
                              .source_ref = request.setup->source_ref,
                              .expires_at = request.setup->expires_at};
    if (request.setup->source_kind) start.source_kind = name_of(*request.setup->source_kind);
    BERTH_CO_TRY(plugins::RemoteLease opened,
                 co_await remote_->open_setup(request.lease, std::move(start)));
    co_return acquired_from(std::move(opened), provider, false);
  }
  if (request.reusable_id) {
    const std::string id = *request.reusable_id;
    Result<std::optional<plugins::RemoteLease>> resumed =
        co_await remote_->resume(request.lease, id);
    const bool is_back = resumed && *resumed;
    if (is_back && (*resumed)->provider_lease_id == id) {
      co_return acquired_from(**std::move(resumed), provider, true);
    }
    // A sandbox that cannot be resumed may still be running, and this server would lose track of
    // it.
    PlaceRef old = request.lease.clone();
    old.provider_lease_id = id;
    BERTH_CO_DO(co_await remote_->destroy(old));
    if (is_back) co_return acquired_from(**std::move(resumed), provider, false);
  }
  BERTH_CO_TRY(plugins::RemoteLease fresh, co_await remote_->acquire(request.lease));
  co_return acquired_from(std::move(fresh), provider, false);
}

Task<Workspace> Plugin::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->realize(lease, wanted);
}

Task<Started> Plugin::start(const PlaceRef& lease, const Command& command) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->start(lease, command);
}

Task<Ended> Plugin::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                           OutputTaker& taker) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->follow(lease, exec_id, offset, taker);
}

Task<> Plugin::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->send(lease, exec_id, std::move(input));
}

Task<> Plugin::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->cancel(lease, exec_id, grace_ms);
}

Task<> Plugin::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->renew(lease, deadline_ms);
}

execution::RemoteFiles* Plugin::remote_files(const PlaceRef& lease) {
  return remote_ == nullptr ? nullptr : remote_->remote_files(lease);
}

Task<> Plugin::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  if (remote_ == nullptr) co_return unavailable(lease);
  BERTH_CO_DO(co_await remote_->release(lease));
  co_return Result<>{};
}

Task<> Plugin::destroy(const PlaceRef& lease) {
  if (remote_ == nullptr) co_return unavailable(lease);
  BERTH_CO_DO(co_await remote_->destroy(lease));
  co_return Result<>{};
}

Task<execution::CapturedTemplate> Plugin::capture_template(
    const PlaceRef& lease, const execution::CaptureTemplate& request) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->capture_template(lease, request);
}

Task<bool> Plugin::delete_template(const PlaceRef& place,
                                   const execution::DeleteTemplate& request) {
  if (remote_ == nullptr) co_return unavailable(place);
  co_return co_await remote_->delete_template(place, request);
}

Task<std::optional<SetupAccess>> Plugin::setup_access(const PlaceRef& lease) {
  if (remote_ == nullptr) co_return unavailable(lease);
  BERTH_CO_TRY(plugins::SetupDoor door, co_await remote_->setup_door(lease));
  co_return SetupAccess{
      .type = parse_name<core::SetupConnection>(door.type).value_or(core::SetupConnection::unknown),
      .command = std::move(door.command),
      .token = std::move(door.token),
      .expires_at = door.expires_at};
}

Task<execution::LiveCommandPtr> Plugin::open_login(const PlaceRef& lease,
                                                   execution::LoginCommand command) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->open_login(lease, command);
}

Task<execution::LiveCommandPtr> Plugin::open_stream(const PlaceRef& lease, const Command& command,
                                                    execution::DuplexBridge bridge) {
  if (remote_ == nullptr) co_return unavailable(lease);
  co_return co_await remote_->open_duplex(lease, command, bridge);
}

Task<execution::Changes> Plugin::changes(const PlaceRef& lease) {
  co_return beyond_plugins(lease, "compared with what it started from");
}

Task<> Plugin::freeze(const PlaceRef& lease) {
  co_return beyond_plugins(lease, "frozen");
}

Task<> Plugin::thaw(const PlaceRef& /*lease*/) {
  co_return Result<>{};
}

Task<> Plugin::close() {
  if (remote_ == nullptr) co_return Result<>{};
  co_return co_await remote_->close();
}

}  // namespace berth::drivers
