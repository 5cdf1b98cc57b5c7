#include "places/place_ref.hpp"

namespace berth::places {

std::string PlaceKey::name() const {
  const char* const noun = lease() ? "lease " : sandbox() ? "sandbox " : "template ";
  return noun + str();
}

PlaceRef PlaceRef::clone() const {
  PlaceRef copy{.key = key,
                .driver = driver,
                .company_id = company_id,
                .environment_id = environment_id,
                .run_id = run_id,
                .sandbox_id = sandbox_id,
                .home_id = home_id,
                .config = config,
                .provider_lease_id = provider_lease_id,
                .metadata = metadata,
                .private_addresses = private_addresses};
  for (const auto& [path, value] : secrets) copy.secrets.emplace(path, value.clone());
  return copy;
}

}  // namespace berth::places
