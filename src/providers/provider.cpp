#include "providers/provider.hpp"

#include "core/environment_config.hpp"

namespace berth::providers {

Result<> check_config_is_for(std::string_view own_key, const bj::object& config) {
  const std::string given = core::provider_of(config);
  if (given == own_key) return {};
  return fail(Errc::validation_failed, "Sandbox provider \"" + std::string{own_key} +
                                           "\" received config for provider \"" + given + "\".");
}

}  // namespace berth::providers
