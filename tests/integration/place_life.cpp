#include "integration/place_contract.hpp"

// What applies to every place, whatever its abilities.
namespace berth::place_test {

using namespace places;

TEST_P(PlaceContract, AProbeOfAGoodPlaceIsOkAndTellsItsSteps) {
  const Result<ProbeReport> report = await(place().probe(request()));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << report->summary;
  EXPECT_FALSE(report->summary.empty());
  EXPECT_FALSE(report->steps.empty());
  for (const ProbeStep& step : report->steps) {
    EXPECT_TRUE(step.ok) << step.name << ": " << step.message;
    EXPECT_FALSE(step.message.empty()) << step.name;
  }
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(PlaceContract, AcquireNamesTheProviderAndIsReleasedWithNothingLeft) {
  const AcquireRequest wanted = request();
  const Result<Acquired> acquired = await(place().acquire(wanted));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_FALSE(acquired->provider.empty());
  EXPECT_FALSE(acquired->resumed);
  PlaceRef lease = wanted.lease.clone();
  lease.provider_lease_id = acquired->provider_lease_id;
  lease.metadata = acquired->metadata;
  EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(PlaceContract, ReleaseAndDestroyMayBeRepeatedInAnyOrder) {
  const PlaceRef lease = new_lease();
  EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_expired)));
  EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(place().destroy(lease)));
  EXPECT_TRUE(await(place().destroy(lease)));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(PlaceContract, ALeaseIsReleasedByAServerThatDidNotAcquireIt) {
  const PlaceRef lease = new_lease();
  restart();
  EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
  EXPECT_EQ(ground().leftovers(), std::vector<std::string>{});
}

TEST_P(PlaceContract, WhatWasNeverAcquiredIsReleasedAllTheSame) {
  EXPECT_TRUE(await(place().release(request().lease, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(place().destroy(request().lease)));
}

// A place without commands has nothing to renew or cancel; the engine does not ask it.
TEST_P(PlaceContract, RenewAndCancelOfALeaseThatRunsNothingAreFine) {
  if (place().abilities().commands == nullptr) return;
  const PlaceRef lease = new_lease();
  const Result<> renewed = await(commands().renew(lease, 60'000));
  EXPECT_TRUE(renewed) << renewed.error().message;
  const Result<> cancelled = await(commands().cancel(lease, "e1", 100));
  EXPECT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_TRUE(await(place().release(lease, core::LeaseEvent::release_succeeded)));
}

// What a place lacks is a null pointer, so that the engine refuses it without asking.
TEST_P(PlaceContract, ItHasTheAbilitiesThatItIsKnownFor) {
  const Abilities has = place().abilities();
  std::set<std::string> names;
  const auto note = [&](const char* name, const void* ability) {
    if (ability != nullptr) names.insert(name);
  };
  note("commands", has.commands);
  note("files", has.files);
  note("remote files", has.remote_files);
  note("ports", has.ports);
  note("egress", has.egress);
  note("snapshots", has.snapshots);
  note("freezer", has.freezer);
  note("logins", has.logins);
  note("usage", has.usage);
  if (has.found_by_key) names.insert("found by key");
  if (has.locality == Locality::own_server) names.insert("on this server");
  EXPECT_EQ(names, ground().abilities());
}

TEST_P(PlaceContract, AGoodConfigIsAccepted) {
  const bj::object config = ground().config();
  const Result<> checked = await(place().check_config(config));
  EXPECT_TRUE(checked) << checked.error().message;
}

TEST_P(PlaceContract, NothingIsHeldAfterALeaseIsDestroyed) {
  const PlaceRef lease = new_lease();
  EXPECT_TRUE(await(place().destroy(lease)));
  const auto held = await(place().held());
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->size(), 0U);
}

}  // namespace berth::place_test
