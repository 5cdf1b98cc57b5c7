#include "places/registry.hpp"

namespace berth::drivers {

Result<Driver*> Registry::find(core::DriverKind kind) const {
  const auto found = drivers_.find(kind);
  if (found != drivers_.end()) return found->second.get();
  return fail(Errc::unsupported_environment,
              "Environment driver \"" + std::string{name_of(kind)} +
                  "\" is not registered in the environment runtime yet.",
              "choose an environment with another driver");
}

Task<> Registry::close() {
  Result<> all;
  for (const auto& [kind, driver] : drivers_) {
    Result<> closed = co_await driver->close();
    if (!closed) all = std::move(closed);
  }
  co_return all;
}

}  // namespace berth::drivers
