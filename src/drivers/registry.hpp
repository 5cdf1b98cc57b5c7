#pragma once

#include "drivers/driver.hpp"

#include <map>

namespace berth::drivers {

// Which driver reaches the environments of a kind. The drivers are their maker's, and outlive this.
class Registry {
 public:
  void add(core::DriverKind kind, Driver& driver) { drivers_.insert_or_assign(kind, &driver); }

  Result<Driver*> find(core::DriverKind kind) const {
    if (const auto found = drivers_.find(kind); found != drivers_.end()) return found->second;
    return fail(Errc::unsupported_environment,
                "Environment driver \"" + std::string{name_of(kind)} +
                    "\" is not registered in the environment runtime yet.",
                "choose an environment with another driver");
  }

 private:
  std::map<core::DriverKind, Driver*> drivers_;
};

}  // namespace berth::drivers
