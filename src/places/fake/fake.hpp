#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "places/place.hpp"

namespace berth::places {

// A provider for probes and tests: does no I/O, and everything except the ids depends only on its
// input. It has no ability.
class Fake final : public Place {
 public:
  Fake(Random& random, const Clock& clock) : random_(random), clock_(clock) {}

  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<> check_config(const bj::object& config) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<> release(const PlaceRef& lease, core::LeaseEvent how) override;
  Task<> destroy(const PlaceRef& lease) override;
  Task<std::vector<PlaceKey>> held() override;
  Task<> close() override;
  Abilities abilities() override { return {}; }

 private:
  Random& random_;
  const Clock& clock_;
};

}  // namespace berth::places
