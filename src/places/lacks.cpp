#include "places/lacks.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"

namespace berth::places {
namespace {

std::unexpected<Error> unsupported(std::string message, std::string remedy = {}) {
  return fail(Errc::execution_unsupported, std::move(message), std::move(remedy));
}

std::string provider_in(const PlaceRef& place) {
  return text_in(place.metadata, "provider").value_or(core::provider_of(place.config));
}

// Operations on a sandbox as a whole: what a provider of this program does not do, and what is
// beyond all plugins.
std::unexpected<Error> beyond_sandbox(const PlaceRef& place, const char* verb, const char* done) {
  if (is_of_plugin(place)) {
    return unsupported(
        place.key.name() + ": the sandbox of a plugin cannot be " + std::string{done},
        "choose an environment of provider linux for that");
  }
  if (place.driver != core::DriverKind::sandbox) {
    return unsupported(place.key.name() + ": its place is not a sandbox",
                       "choose an environment of driver 'sandbox'");
  }
  return unsupported("Sandbox provider \"" + provider_in(place) + "\" does not " +
                         std::string{verb} + " sandboxes.",
                     "choose an environment whose provider does");
}

}  // namespace

bool is_of_plugin(const PlaceRef& place) {
  return place.driver == core::DriverKind::plugin || place.metadata.contains("pluginId");
}

std::unexpected<Error> lacks(Lack what, const PlaceRef& place, const std::string& detail) {
  const std::string name = place.key.name();
  switch (what) {
    case Lack::commands:
      return unsupported("provider \"" + provider_in(place) + "\" cannot run commands",
                         "choose an environment that runs commands: local, ssh, or a sandbox of "
                         "provider linux or of a plugin");
    case Lack::files:
      return unsupported(name + ": its place gives no files in or out",
                         "use a command: berth exec LEASE -- tar c FOLDER");
    case Lack::usage: return unsupported(name + ": its usage is not measured");
    case Lack::port:
      return unsupported(name + ": port " + detail +
                             " cannot be forwarded, because its place has no network of its own",
                         "run the command in an environment of the sandbox provider 'linux'");
    case Lack::open_ports:
      return unsupported(name + ": its ports cannot be seen from outside",
                         "ask inside: berth exec LEASE -- ss -tln");
    case Lack::egress: return unsupported(name + ": its place has no egress gateway");
    case Lack::capture: return beyond_sandbox(place, "capture", "captured");
    case Lack::template_deletion: return beyond_sandbox(place, "delete captured", "deleted");
    case Lack::changes:
      return beyond_sandbox(place, "compare", "compared with what it started from");
    case Lack::freeze: return beyond_sandbox(place, "freeze", "frozen");
    case Lack::thaw: return beyond_sandbox(place, "thaw", "thawed");
    case Lack::login: break;
  }
  return unsupported(name +
                         ": only the sandbox of a plugin has a login "
                         "terminal; this place has any terminal",
                     "run it there: berth exec -it " + place.key.str() + " -- " + detail);
}

}  // namespace berth::places
