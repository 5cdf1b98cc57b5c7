#include "places/provider.hpp"

#include "core/config/environment_config.hpp"

namespace berth::providers {
namespace {

std::unexpected<Error> cannot(std::string_view provider, std::string_view what) {
  return fail(Errc::execution_unsupported,
              "Sandbox provider \"" + std::string{provider} + "\" does not " + std::string{what} +
                  " sandboxes.",
              "choose an environment whose provider does");
}

}  // namespace

Task<execution::CapturedTemplate> Provider::capture_template(
    bj::object /*config*/, SandboxName /*name*/, execution::CaptureTemplate /*request*/) {
  co_return cannot(key(), "capture");
}

Task<bool> Provider::delete_template(bj::object /*config*/, execution::DeleteTemplate /*request*/) {
  co_return cannot(key(), "delete captured");
}

Task<execution::Changes> Provider::changes(bj::object /*config*/, SandboxName /*name*/) {
  co_return cannot(key(), "compare");
}

Task<> Provider::freeze(bj::object /*config*/, SandboxName /*name*/) {
  co_return cannot(key(), "freeze");
}

Task<> Provider::thaw(bj::object /*config*/, SandboxName /*name*/) {
  co_return cannot(key(), "thaw");
}

Result<> check_config_is_for(std::string_view own_key, const bj::object& config) {
  const std::string given = core::provider_of(config);
  if (given == own_key) return {};
  return fail(Errc::validation_failed, "Sandbox provider \"" + std::string{own_key} +
                                           "\" received config for provider \"" + given + "\".");
}

}  // namespace berth::providers
