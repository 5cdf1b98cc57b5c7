#pragma once

#include "places/place.hpp"

#include <map>
#include <memory>

namespace berth::drivers {

// This server's drivers. Filled once at start, by app/.
class Registry {
 public:
  void add(core::DriverKind kind, std::unique_ptr<Driver> driver) {
    drivers_.insert_or_assign(kind, std::move(driver));
  }
  // The driver is valid as long as the registry.
  Result<Driver*> find(core::DriverKind kind) const;
  // Closes every driver; an error in one does not keep the others open.
  Task<> close();

 private:
  std::map<core::DriverKind, std::unique_ptr<Driver>> drivers_;
};

}  // namespace berth::drivers
