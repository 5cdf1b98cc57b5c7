#pragma once

#include "drivers/driver.hpp"

#include <map>
#include <memory>

namespace berth::drivers {

// The drivers that this server has. Filled once at start, by app/.
class Registry {
 public:
  void add(core::DriverKind kind, std::unique_ptr<Driver> driver) {
    drivers_.insert_or_assign(kind, std::move(driver));
  }
  // The driver stays valid as long as the registry.
  Result<Driver*> find(core::DriverKind kind) const;
  // Closes every driver; an error of one does not keep the others open.
  Task<> close();

 private:
  std::map<core::DriverKind, std::unique_ptr<Driver>> drivers_;
};

}  // namespace berth::drivers
