#pragma once

#include "places/place.hpp"

namespace berth::places {

// Environments whose plugin is not there. Every operation, even release, is refused, and the
// refusal names what the config needs; a probe reports it.
class Absent final : public Place {
 public:
  // `sandbox` or `plugin`.
  explicit Absent(core::DriverKind driver) : driver_(driver) {}

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  Task<> close() override;
  Abilities abilities() override { return {.found_by_key = false}; }

 private:
  core::DriverKind driver_;
};

}  // namespace berth::places
