#include "places/fake/fake.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/sandbox_fields.hpp"
#include "places/sandbox_provider.hpp"

namespace berth::places {
namespace {

constexpr std::string_view fake_key = "fake";

bj::object as_json(const core::FakeConfig& config) {
  return {{"provider", fake_key}, {"image", config.image}, {"reuseLease", config.reuse_lease}};
}

Result<core::FakeConfig> read_fake_config(const bj::object& config) {
  BERTH_DO(check_config_is_for(fake_key, config));
  BERTH_TRY(const bj::object stored, core::parse_sandbox_config(config));
  return read_loosely<core::FakeConfig>(stored);
}

Result<Verdict> verdict_on(const bj::object& json) {
  BERTH_TRY(const core::FakeConfig config, read_fake_config(json));
  return Verdict{.ok = true,
                 .summary = "Fake sandbox provider is ready for image " + config.image + ".",
                 .details = as_json(config)};
}

// What the lease was made with takes precedence over what its environment says by now.
Result<> check_is_ours(const PlaceRef& lease) {
  const bool made_here = text_in(lease.metadata, "provider") == fake_key &&
                         text_in(lease.metadata, "image").has_value();
  return made_here ? Result<>{} : check_config_is_for(fake_key, lease.config);
}

}  // namespace

Task<ProbeReport> Fake::probe(const AcquireRequest& request) {
  const auto begun = std::chrono::steady_clock::now();
  co_return report_of(verdict_on(request.lease.config), core::provider_of(request.lease.config),
                      begun);
}

Task<> Fake::check_config(const bj::object& config) {
  BERTH_CO_DO(read_fake_config(config));
  co_return Result<>{};
}

Task<Acquired> Fake::acquire(const AcquireRequest& request) {
  const PlaceRef& lease = request.lease;
  BERTH_CO_TRY(const core::FakeConfig config, read_fake_config(lease.config));
  Acquired made{.provider = std::string{fake_key}, .metadata = as_json(config)};
  if (config.reuse_lease && request.reusable_id) {
    made.provider_lease_id = request.reusable_id;
    made.metadata["resumedLease"] = true;
    made.resumed = true;
    co_return made;
  }
  // An unsaved config has no environment by which its sandbox could be found again.
  if (config.reuse_lease && lease.environment_id) {
    made.provider_lease_id = "sandbox://fake/" + lease.environment_id->str();
    co_return made;
  }
  const std::string run = lease.run_id ? lease.run_id->str() : make_uuid(random_, clock_.now());
  made.provider_lease_id = "sandbox://fake/" + run + "/" + make_uuid(random_, clock_.now());
  co_return made;
}

Task<> Fake::release(const PlaceRef& lease, core::LeaseEvent /*how*/) {
  co_return check_is_ours(lease);
}

Task<> Fake::destroy(const PlaceRef& lease) {
  co_return check_is_ours(lease);
}

Task<std::vector<PlaceKey>> Fake::held() {
  co_return std::vector<PlaceKey>{};
}

Task<> Fake::close() {
  co_return Result<>{};
}

}  // namespace berth::places
