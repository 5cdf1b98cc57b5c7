#include "places/place.hpp"

namespace berth::drivers {
namespace {

std::unexpected<Error> no_sandbox(const std::string& what) {
  return fail(Errc::execution_unsupported, what + ": its place is not a sandbox",
              "choose an environment of driver 'sandbox'");
}

}  // namespace

Task<> Driver::check_config(const bj::object& /*config*/) {
  co_return Result<>{};
}

Task<execution::CapturedTemplate> Driver::capture_template(
    const PlaceRef& lease, const execution::CaptureTemplate& /*request*/) {
  co_return no_sandbox("lease " + lease.lease_id.str());
}

Task<bool> Driver::delete_template(const PlaceRef& /*place*/,
                                   const execution::DeleteTemplate& request) {
  co_return no_sandbox("template " + request.key.str());
}

Task<std::optional<SetupAccess>> Driver::setup_access(const PlaceRef& /*lease*/) {
  co_return std::optional<SetupAccess>{};
}

Task<execution::LiveCommandPtr> Driver::open_login(const PlaceRef& lease,
                                                   execution::LoginCommand command) {
  const bool is_claude = command == execution::LoginCommand::claude;
  const std::string words = is_claude ? "claude setup-token" : "codex login";
  co_return fail(Errc::execution_unsupported,
                 "lease " + lease.lease_id.str() +
                     ": only the sandbox of a plugin has a login "
                     "terminal; this place has any terminal",
                 "run it there: berth exec -it " + lease.lease_id.str() + " -- " + words);
}

Task<execution::LiveCommandPtr> Driver::open_stream(const PlaceRef& /*lease*/,
                                                    const Command& /*command*/,
                                                    execution::DuplexBridge /*bridge*/) {
  co_return nullptr;
}

Task<execution::Changes> Driver::changes(const PlaceRef& lease) {
  co_return no_sandbox("lease " + lease.lease_id.str());
}

Task<> Driver::freeze(const PlaceRef& lease) {
  co_return no_sandbox("lease " + lease.lease_id.str());
}

Task<> Driver::thaw(const PlaceRef& lease) {
  co_return no_sandbox("lease " + lease.lease_id.str());
}

Task<> Driver::close() {
  co_return Result<>{};
}

}  // namespace berth::drivers
