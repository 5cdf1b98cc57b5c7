#include "places/sandbox.hpp"

#include "core/config/environment_config.hpp"

#include <chrono>

namespace berth::drivers {
namespace {

using providers::LeaseEnd;
using providers::Provider;
using providers::Verdict;

std::unexpected<Error> cannot_execute(const Provider& provider) {
  return fail(Errc::execution_unsupported,
              "provider \"" + std::string{provider.key()} + "\" cannot run commands",
              "choose an environment that runs commands: local, ssh, or a sandbox of provider "
              "linux or of a plugin");
}

LeaseEnd end_of(core::LeaseEvent how) {
  switch (how) {
    case core::LeaseEvent::release_succeeded: return LeaseEnd::released;
    case core::LeaseEvent::release_failed: return LeaseEnd::failed;
    default: return LeaseEnd::expired;  // cancelled, or cleaned up after it expired
  }
}

// A lease without a recorded sandbox of its own uses the lease id as its key.
core::SandboxId key_of(const PlaceRef& lease) {
  return lease.sandbox_id.value_or(*core::SandboxId::parse(lease.lease_id.str()));
}

providers::SandboxName sandbox_name_of(const PlaceRef& lease) {
  return {.key = key_of(lease), .provider_lease_id = lease.provider_lease_id};
}

std::int64_t ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               start)
      .count();
}

ProbeReport report_of(ProbeStep step, std::optional<bj::object> details) {
  return {.ok = step.ok,
          .driver = core::DriverKind::sandbox,
          .summary = step.message,
          .details = std::move(details),
          .steps = {step}};
}

}  // namespace

bj::object Sandbox::config_of(const PlaceRef& lease) const {
  return providers_.loose_config_from(lease.metadata).value_or(lease.config);
}

Driver* Sandbox::plugin_of(const PlaceRef& lease) const {
  return providers_.contains(core::provider_of(lease.config)) ? nullptr : plugins_;
}

Result<execution::Execution*> Sandbox::execution_of(const PlaceRef& lease) const {
  if (Driver* const plugin = plugin_of(lease)) return plugin;
  BERTH_TRY(Provider* const provider, providers_.find(core::provider_of(config_of(lease))));
  execution::Execution* const inside = provider->execution();
  if (inside == nullptr) return cannot_execute(*provider);
  return inside;
}

Task<ProbeReport> Sandbox::probe(const AcquireRequest& request) {
  if (Driver* const plugin = plugin_of(request.lease)) co_return co_await plugin->probe(request);
  const auto start = std::chrono::steady_clock::now();
  ProbeStep step{.name = "provider"};
  const std::string key = core::provider_of(request.lease.config);
  const Result<Provider*> provider = providers_.find(key);
  if (!provider) {
    step.message =
        "Sandbox provider \"" + key + "\" is not installed or its plugin worker is not running.";
    step.code = name_of(provider.error().code);
    step.remedy = provider.error().remedy;
    co_return report_of(std::move(step), bj::object{{"provider", key}});
  }
  const Result<Verdict> verdict = co_await (*provider)->probe(request.lease.config);
  step.duration_ms = ms_since(start);
  if (!verdict) {
    step.message = verdict.error().message;
    step.code = name_of(verdict.error().code);
    step.remedy = verdict.error().remedy;
    co_return report_of(std::move(step), bj::object{{"provider", key}});
  }
  step.ok = verdict->ok;
  step.message = verdict->summary;
  ProbeReport report = report_of(std::move(step), verdict->details);
  if (!verdict->steps.empty()) report.steps = verdict->steps;
  co_return report;
}

Task<> Sandbox::check_config(const bj::object& config) {
  const std::string key = core::provider_of(config);
  if (!providers_.contains(key)) co_return Result<>{};
  BERTH_CO_TRY(Provider* const provider, providers_.find(key));
  BERTH_CO_TRY(const Verdict verdict, co_await provider->validate(config));
  if (verdict.ok) co_return Result<>{};
  co_return fail(Errc::unprocessable, verdict.summary);
}

Task<Acquired> Sandbox::acquire(const AcquireRequest& request) {
  if (Driver* const plugin = plugin_of(request.lease)) co_return co_await plugin->acquire(request);
  providers::AcquireLease wanted{.config = request.lease.config,
                                 .key = key_of(request.lease),
                                 .environment_id = request.lease.environment_id,
                                 .run_id = request.lease.run_id,
                                 .home_id = request.lease.home_id};
  BERTH_CO_TRY(providers::AcquiredLease lease,
               co_await providers_.acquire(std::move(wanted), request.reusable_id));
  co_return Acquired{.provider = core::provider_of(request.lease.config),
                     .provider_lease_id = std::move(lease.provider_lease_id),
                     .metadata = std::move(lease.metadata),
                     .resumed = lease.resumed};
}

bool Sandbox::finds_by_key(const bj::object& config) const {
  return providers_.contains(core::provider_of(config));
}

bool Sandbox::stays_on_its_server(const bj::object& config) const {
  const Result<Provider*> provider = providers_.find(core::provider_of(config));
  return provider && (*provider)->stays_on_its_server();
}

Task<Workspace> Sandbox::realize(const PlaceRef& lease, const std::optional<std::string>& wanted) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->realize(lease, wanted);
}

Task<Started> Sandbox::start(const PlaceRef& lease, const Command& command) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->start(lease, command);
}

Task<Ended> Sandbox::follow(const PlaceRef& lease, const std::string& exec_id, std::uint64_t offset,
                            OutputTaker& taker) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->follow(lease, exec_id, offset, taker);
}

Task<> Sandbox::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->send(lease, exec_id, std::move(input));
}

Task<> Sandbox::cancel(const PlaceRef& lease, const std::string& exec_id, std::int64_t grace_ms) {
  const Result<execution::Execution*> inside = execution_of(lease);
  if (!inside) co_return Result<>{};  // if nothing can run, there is nothing to end
  co_return co_await (*inside)->cancel(lease, exec_id, grace_ms);
}

Task<> Sandbox::renew(const PlaceRef& lease, std::int64_t deadline_ms) {
  const Result<execution::Execution*> inside = execution_of(lease);
  if (!inside) co_return Result<>{};
  co_return co_await (*inside)->renew(lease, deadline_ms);
}

Task<> Sandbox::forget_output(const PlaceRef& lease, const std::string& exec_id) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->forget_output(lease, exec_id);
}

Task<std::vector<std::uint16_t>> Sandbox::listening(const PlaceRef& lease) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->listening(lease);
}

Task<execution::Usage> Sandbox::usage(const PlaceRef& lease) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->usage(lease);
}

Task<execution::FileRoot> Sandbox::files(const PlaceRef& lease) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->files(lease);
}

execution::RemoteFiles* Sandbox::remote_files(const PlaceRef& lease) {
  Driver* const plugin = plugin_of(lease);
  return plugin == nullptr ? nullptr : plugin->remote_files(lease);
}

Task<Fd> Sandbox::dial(const PlaceRef& lease, std::uint16_t port) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->dial(lease, port);
}

Task<> Sandbox::set_egress(const PlaceRef& lease, core::LinuxEgress policy) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->set_egress(lease, std::move(policy));
}

Task<execution::EgressPage> Sandbox::egress_log(const PlaceRef& lease, std::uint64_t offset) {
  BERTH_CO_TRY(execution::Execution* const inside, execution_of(lease));
  co_return co_await inside->egress_log(lease, offset);
}

Task<> Sandbox::release(const PlaceRef& lease, core::LeaseEvent how) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->release(lease, how);
  bj::object config = config_of(lease);
  BERTH_CO_TRY(Provider* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->release(std::move(config), sandbox_name_of(lease), end_of(how));
}

Task<> Sandbox::destroy(const PlaceRef& lease) {
  if (Driver* const plugin = plugin_of(lease)) co_return co_await plugin->destroy(lease);
  bj::object config = config_of(lease);
  BERTH_CO_TRY(Provider* const provider, providers_.find(core::provider_of(config)));
  co_return co_await provider->destroy(std::move(config), sandbox_name_of(lease));
}

}  // namespace berth::drivers
