#include "integration/driver_contract.hpp"

// What applies to every driver, whether it executes commands or not.
namespace berth::driver_test {

using namespace drivers;

TEST_P(DriverContract, AProbeOfAGoodPlaceIsOkAndTellsItsSteps) {
  const Result<ProbeReport> report = await(driver().probe(request()));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << report->summary;
  EXPECT_FALSE(report->summary.empty());
  EXPECT_FALSE(report->steps.empty());
  for (const ProbeStep& step : report->steps) {
    EXPECT_TRUE(step.ok) << step.name << ": " << step.message;
    EXPECT_FALSE(step.message.empty()) << step.name;
  }
  EXPECT_EQ(place().leftovers(), std::vector<std::string>{});
}

TEST_P(DriverContract, AcquireNamesTheProviderAndIsReleasedWithNothingLeft) {
  const AcquireRequest wanted = request();
  const Result<Acquired> acquired = await(driver().acquire(wanted));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_FALSE(acquired->provider.empty());
  EXPECT_FALSE(acquired->resumed);
  PlaceRef lease = wanted.lease.clone();
  lease.provider_lease_id = acquired->provider_lease_id;
  lease.metadata = acquired->metadata;
  EXPECT_TRUE(await(driver().release(lease, core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(place().leftovers(), std::vector<std::string>{});
}

TEST_P(DriverContract, ReleaseAndDestroyMayBeRepeatedInAnyOrder) {
  const PlaceRef lease = new_lease();
  EXPECT_TRUE(await(driver().release(lease, core::LeaseEvent::release_expired)));
  EXPECT_TRUE(await(driver().release(lease, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(driver().destroy(lease)));
  EXPECT_TRUE(await(driver().destroy(lease)));
  EXPECT_EQ(place().leftovers(), std::vector<std::string>{});
}

TEST_P(DriverContract, ALeaseIsReleasedByAServerThatDidNotAcquireIt) {
  const PlaceRef lease = new_lease();
  restart_driver();
  EXPECT_TRUE(await(driver().release(lease, core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(place().leftovers(), std::vector<std::string>{});
}

TEST_P(DriverContract, WhatWasNeverAcquiredIsReleasedAllTheSame) {
  EXPECT_TRUE(await(driver().release(request().lease, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(driver().destroy(request().lease)));
}

TEST_P(DriverContract, RenewAndCancelOfALeaseThatRunsNothingAreFine) {
  const PlaceRef lease = new_lease();
  const Result<> renewed = await(driver().renew(lease, 60'000));
  EXPECT_TRUE(renewed) << renewed.error().message;
  const Result<> cancelled = await(driver().cancel(lease, "e1", 100));
  EXPECT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_TRUE(await(driver().release(lease, core::LeaseEvent::release_succeeded)));
}

}  // namespace berth::driver_test
