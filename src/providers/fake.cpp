#include "providers/fake.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"

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

// A lease records its config.
struct FakeLease {
  std::optional<std::string> provider;
  std::optional<std::string> image;
  bool reuse_lease = false;
};
BOOST_DESCRIBE_STRUCT(FakeLease, (), (provider, image, reuse_lease))

// Nothing if the metadata is that of another provider's lease.
std::optional<Config> fake_config_in(const bj::object& lease_metadata) {
  const auto found = read_loosely<FakeLease>(lease_metadata);
  if (found.provider != fake_key || !found.image) return std::nullopt;
  return Config{.image = *found.image, .reuse_lease = found.reuse_lease};
}

Result<Config> read_fake_config(const bj::object& config) {
  BERTH_DO(check_config_is_for(fake_key, config));
  BERTH_TRY(const bj::object stored, core::parse_sandbox_config(config));
  const auto read_config = read_loosely<core::FakeConfig>(stored);
  return Config{.image = read_config.image, .reuse_lease = read_config.reuse_lease};
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
  const std::optional<Config> had = fake_config_in(lease.metadata);
  return wanted && lease.provider_lease_id && !lease.provider_lease_id->empty() && had &&
         had->reuse_lease && had->image == wanted->image;
}

std::optional<bj::object> Fake::config_from(const bj::object& lease_metadata) const {
  const std::optional<Config> had = fake_config_in(lease_metadata);
  return had ? std::optional{had->as_json()} : std::nullopt;
}

}  // namespace berth::providers
