#include "places/fake/fake.hpp"

#include "core/config/environment_config.hpp"
#include "base/json/loose.hpp"

namespace berth::providers {
namespace {

constexpr std::string_view fake_key = "fake";

struct Config {
  std::string image;
  bool reuse_lease = false;

  bj::object as_json() const {
    return {{"provider", fake_key}, {"image", image}, {"reuseLease", reuse_lease}};
  }
};

Result<Config> read_fake_config(const bj::object& config) {
  BERTH_DO(check_config_is_for(fake_key, config));
  BERTH_TRY(const bj::object stored, core::parse_sandbox_config(config));
  return Config{.image = text_at(stored, "image").value_or(""),
                .reuse_lease = is_true_at(stored, "reuseLease")};
}

Task<Verdict> verdict(bj::object json, std::string before_image) {
  BERTH_CO_TRY(const Config config, read_fake_config(json));
  co_return Verdict{
      .ok = true, .summary = before_image + " " + config.image + ".", .details = config.as_json()};
}

}  // namespace

Task<Verdict> Fake::validate(bj::object config) {
  return verdict(std::move(config), "Fake sandbox provider config is valid for image");
}

Task<Verdict> Fake::probe(bj::object config) {
  return verdict(std::move(config), "Fake sandbox provider is ready for image");
}

Task<ProviderLease> Fake::acquire(AcquireLease request) {
  BERTH_CO_TRY(const Config config, read_fake_config(request.config));
  // An unsaved config has no environment by which its sandbox could be found again.
  if (config.reuse_lease && request.environment_id) {
    co_return ProviderLease{.provider_lease_id = "sandbox://fake/" + request.environment_id->str(),
                            .metadata = config.as_json()};
  }
  const std::string run = request.run_id ? request.run_id->str() : make_uuid(random_, clock_.now());
  co_return ProviderLease{
      .provider_lease_id = "sandbox://fake/" + run + "/" + make_uuid(random_, clock_.now()),
      .metadata = config.as_json()};
}

Task<std::optional<ProviderLease>> Fake::resume(bj::object config, std::string provider_lease_id) {
  BERTH_CO_TRY(const Config read_config, read_fake_config(config));
  ProviderLease lease{.provider_lease_id = std::move(provider_lease_id),
                      .metadata = read_config.as_json()};
  lease.metadata["resumedLease"] = true;
  co_return std::optional{std::move(lease)};
}

Task<> Fake::release(bj::object config, SandboxName /*name*/, LeaseEnd /*how*/) {
  co_return check_config_is_for(fake_key, config);
}

Task<> Fake::destroy(bj::object config, SandboxName /*name*/) {
  co_return check_config_is_for(fake_key, config);
}

bool Fake::matches(const bj::object& config, const ReusableLease& lease) const {
  const Result<Config> wanted = read_fake_config(config);
  return wanted && lease.provider_lease_id && !lease.provider_lease_id->empty() &&
         text_at(lease.metadata, "provider") == fake_key &&
         is_true_at(lease.metadata, "reuseLease") &&
         text_at(lease.metadata, "image") == wanted->image;
}

std::optional<bj::object> Fake::config_from(const bj::object& lease_metadata) const {
  const std::optional<std::string> image = text_at(lease_metadata, "image");
  if (text_at(lease_metadata, "provider") != fake_key || !image) return std::nullopt;
  return Config{.image = *image, .reuse_lease = is_true_at(lease_metadata, "reuseLease")}.as_json();
}

}  // namespace berth::providers
