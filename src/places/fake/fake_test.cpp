#include "places/fake/fake.hpp"

#include "base/clock.hpp"
#include "base/random.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::places {
namespace {

const core::LeaseId fake_lease = *core::LeaseId::parse("0190163d-8694-739b-aea5-966c26f8ad90");
const core::EnvironmentId environment =
    *core::EnvironmentId::parse("0190163d-8694-739b-aea5-966c26f8ad91");
const core::RunId run = *core::RunId::parse("0190163d-8694-739b-aea5-966c26f8ad92");

bj::object fake_json(std::string_view text) {
  return parse_json(text)->as_object();
}

template <class T>
Result<T> await_fake(Task<T> task) {
  asio::io_context loop;
  std::optional<Result<T>> answer;
  asio::co_spawn(loop, std::move(task),
                 [&](std::exception_ptr, Result<T> result) { answer = std::move(result); });
  loop.run();
  return *std::move(answer);
}

class FakeProvider : public testing::Test {
 protected:
  static PlaceRef ref(std::string_view config) {
    return {.key = fake_lease,
            .driver = core::DriverKind::sandbox,
            .environment_id = environment,
            .run_id = run,
            .config = fake_json(config)};
  }
  Result<Acquired> acquire(PlaceRef lease, std::optional<std::string> reusable = {}) {
    const AcquireRequest request{.lease = std::move(lease), .reusable_id = std::move(reusable)};
    return await_fake(fake_.acquire(request));
  }

  SeededRandom random_{1};
  FakeClock clock_;
  Fake fake_{random_, clock_};
};

TEST_F(FakeProvider, AcceptsAConfigWithAnImage) {
  EXPECT_TRUE(await_fake(fake_.check_config(fake_json(R"({"provider": "fake", "image": "i:1"})"))));
}

TEST_F(FakeProvider, IsReadyForTheDefaultImageWhenNoneIsGiven) {
  const AcquireRequest request{.lease = ref(R"({"provider": "fake", "reuseLease": true})")};
  const auto report = await_fake(fake_.probe(request));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ok);
  EXPECT_EQ(report->summary, "Fake sandbox provider is ready for image ubuntu:24.04.");
  EXPECT_EQ(report->details,
            fake_json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": true})"));
  ASSERT_EQ(report->steps.size(), 1U);
  EXPECT_EQ(report->steps[0].name, "provider");
}

TEST_F(FakeProvider, RefusesTheConfigOfAnother) {
  const PlaceRef other = ref(R"({"provider": "e2b"})");
  const auto checked = await_fake(fake_.check_config(other.config));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            R"(Sandbox provider "fake" received config for provider "e2b".)");
  EXPECT_FALSE(acquire(other.clone()));
  EXPECT_FALSE(acquire(other.clone(), "id"));
  EXPECT_FALSE(await_fake(fake_.release(other, core::LeaseEvent::release_succeeded)));
  EXPECT_FALSE(await_fake(fake_.destroy(other)));
}

TEST_F(FakeProvider, GivesAReusableLeaseTheNameOfItsEnvironment) {
  const auto lease = acquire(ref(R"({"image": "i", "reuseLease": true})"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->provider, "fake");
  EXPECT_EQ(lease->provider_lease_id, "sandbox://fake/" + environment.str());
  EXPECT_FALSE(lease->resumed);
  EXPECT_EQ(lease->metadata,
            fake_json(R"({"provider": "fake", "image": "i", "reuseLease": true})"));
}

TEST_F(FakeProvider, GivesEachOtherLeaseAnIdOfItsOwnUnderItsRun) {
  const auto one = acquire(ref("{}"));
  const auto two = acquire(ref("{}"));
  ASSERT_TRUE(one && two);
  const std::string prefix = "sandbox://fake/" + run.str() + "/";
  EXPECT_TRUE(one->provider_lease_id->starts_with(prefix)) << *one->provider_lease_id;
  EXPECT_TRUE(is_uuid(one->provider_lease_id->substr(prefix.size())));
  EXPECT_NE(one->provider_lease_id, two->provider_lease_id);
  EXPECT_EQ(one->metadata,
            fake_json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": false})"));
}

TEST_F(FakeProvider, ResumesTheGivenIdAndSaysThatItDid) {
  const auto lease = acquire(ref(R"({"image": "i", "reuseLease": true})"), "the-id");
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->resumed);
  EXPECT_EQ(lease->provider_lease_id, "the-id");
  EXPECT_EQ(
      lease->metadata,
      fake_json(R"({"provider": "fake", "image": "i", "reuseLease": true, "resumedLease": true})"));
}

TEST_F(FakeProvider, MakesANewSandboxWhenTheConfigForbidsReuse) {
  const auto lease = acquire(ref(R"({"image": "i", "reuseLease": false})"), "the-id");
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->resumed);
  EXPECT_NE(lease->provider_lease_id, "the-id");
}

TEST_F(FakeProvider, HasNothingToDoToReleaseOrDestroy) {
  for (const std::optional<std::string>& id : {std::optional<std::string>{"id"}, {}}) {
    PlaceRef lease = ref("{}");
    lease.provider_lease_id = id;
    EXPECT_TRUE(await_fake(fake_.release(lease, core::LeaseEvent::release_failed)));
    EXPECT_TRUE(await_fake(fake_.destroy(lease)));
    EXPECT_TRUE(await_fake(fake_.destroy(lease)));
  }
}

TEST_F(FakeProvider, HasNoAbilityAndIsFoundByItsKey) {
  const Abilities abilities = fake_.abilities();
  EXPECT_EQ(abilities.commands, nullptr);
  EXPECT_EQ(abilities.files, nullptr);
  EXPECT_EQ(abilities.snapshots, nullptr);
  EXPECT_TRUE(abilities.found_by_key);
  EXPECT_EQ(abilities.locality, Locality::anywhere);
}

}  // namespace
}  // namespace berth::places
