#include "base/clock.hpp"
#include "base/random.hpp"
#include "places/built_in.hpp"
#include "places/fake/fake.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::providers {
namespace {

const core::EnvironmentId environment =
    *core::EnvironmentId::parse("0190163d-8694-739b-aea5-966c26f8ad91");
const core::RunId run = *core::RunId::parse("0190163d-8694-739b-aea5-966c26f8ad92");

bj::object json(std::string_view text) {
  return parse_json(text)->as_object();
}

template <class T>
Result<T> await(Task<T> task) {
  asio::io_context loop;
  std::optional<Result<T>> answer;
  asio::co_spawn(loop, std::move(task),
                 [&](std::exception_ptr, Result<T> result) { answer = std::move(result); });
  loop.run();
  return *std::move(answer);
}

// A provider whose sandboxes no longer exist; records the calls to it.
class Forgetful final : public Provider {
 public:
  explicit Forgetful(std::vector<std::string>& calls) : calls_(calls) {}

  std::string_view key() const override { return "forgetful"; }
  Task<Verdict> validate(bj::object /*config*/) override { co_return Verdict{}; }
  Task<Verdict> probe(bj::object /*config*/) override { co_return Verdict{}; }
  Task<ProviderLease> acquire(AcquireLease /*request*/) override {
    calls_.emplace_back("acquire");
    co_return ProviderLease{.provider_lease_id = "fresh"};
  }
  Task<std::optional<ProviderLease>> resume(bj::object /*config*/, std::string id) override {
    calls_.push_back("resume " + id);
    co_return std::optional<ProviderLease>{};
  }
  Task<> release(bj::object /*config*/, SandboxName /*name*/, LeaseEnd /*how*/) override {
    co_return Result<>{};
  }
  Task<> destroy(bj::object /*config*/, SandboxName /*name*/) override { co_return Result<>{}; }
  bool matches(const bj::object& /*config*/, const ReusableLease& /*lease*/) const override {
    return false;
  }
  std::optional<bj::object> config_from(const bj::object& /*metadata*/) const override {
    return std::nullopt;
  }

 private:
  std::vector<std::string>& calls_;
};

class FakeProvider : public testing::Test {
 protected:
  SeededRandom random_{1};
  FakeClock clock_;
  Fake fake_{random_, clock_};
};

TEST_F(FakeProvider, ValidatesWithItsImageInTheSummary) {
  const auto verdict = await(fake_.validate(json(R"({"provider": "fake", "image": "i:1"})")));
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->ok);
  EXPECT_EQ(verdict->summary, "Fake sandbox provider config is valid for image i:1.");
  EXPECT_EQ(verdict->details, json(R"({"provider": "fake", "image": "i:1", "reuseLease": false})"));
}

TEST_F(FakeProvider, IsReadyForTheDefaultImageWhenNoneIsGiven) {
  const auto verdict = await(fake_.probe(json(R"({"provider": "fake", "reuseLease": true})")));
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->ok);
  EXPECT_EQ(verdict->summary, "Fake sandbox provider is ready for image ubuntu:24.04.");
  EXPECT_EQ(verdict->details,
            json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": true})"));
}

TEST_F(FakeProvider, RefusesTheConfigOfAnother) {
  const auto verdict = await(fake_.validate(json(R"({"provider": "e2b"})")));
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().message,
            R"(Sandbox provider "fake" received config for provider "e2b".)");
  EXPECT_FALSE(await(fake_.acquire({.config = json(R"({"provider": "e2b"})")})));
  EXPECT_FALSE(await(fake_.resume(json(R"({"provider": "e2b"})"), "id")));
  EXPECT_FALSE(await(fake_.release(json(R"({"provider": "e2b"})"), {.provider_lease_id = "id"},
                                   LeaseEnd::released)));
  EXPECT_FALSE(await(fake_.destroy(json(R"({"provider": "e2b"})"), {.provider_lease_id = "id"})));
}

TEST_F(FakeProvider, GivesAReusableLeaseTheNameOfItsEnvironment) {
  const auto lease = await(fake_.acquire({.config = json(R"({"image": "i", "reuseLease": true})"),
                                          .environment_id = environment,
                                          .run_id = run}));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->provider_lease_id, "sandbox://fake/" + environment.str());
  EXPECT_EQ(lease->metadata, json(R"({"provider": "fake", "image": "i", "reuseLease": true})"));
}

TEST_F(FakeProvider, GivesEachOtherLeaseAnIdOfItsOwnUnderItsRun) {
  const AcquireLease wanted{.config = json("{}"), .environment_id = environment, .run_id = run};
  const auto one = await(fake_.acquire(wanted));
  const auto two = await(fake_.acquire(wanted));
  ASSERT_TRUE(one && two);
  const std::string prefix = "sandbox://fake/" + run.str() + "/";
  EXPECT_TRUE(one->provider_lease_id.starts_with(prefix)) << one->provider_lease_id;
  EXPECT_TRUE(is_uuid(one->provider_lease_id.substr(prefix.size())));
  EXPECT_NE(one->provider_lease_id, two->provider_lease_id);
  EXPECT_EQ(one->metadata,
            json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": false})"));
}

TEST_F(FakeProvider, ResumesTheGivenIdAndSaysThatItDid) {
  const auto lease = await(fake_.resume(json(R"({"image": "i", "reuseLease": true})"), "the-id"));
  ASSERT_TRUE(lease);
  ASSERT_TRUE(*lease);
  EXPECT_EQ((*lease)->provider_lease_id, "the-id");
  EXPECT_EQ(
      (*lease)->metadata,
      json(R"({"provider": "fake", "image": "i", "reuseLease": true, "resumedLease": true})"));
}

TEST_F(FakeProvider, HasNothingToDoToReleaseOrDestroy) {
  for (const std::optional<std::string>& id : {std::optional<std::string>{"id"}, {}}) {
    EXPECT_TRUE(await(fake_.release(json("{}"), {.provider_lease_id = id}, LeaseEnd::failed)));
    EXPECT_TRUE(await(fake_.destroy(json("{}"), {.provider_lease_id = id})));
    EXPECT_TRUE(await(fake_.destroy(json("{}"), {.provider_lease_id = id})));
  }
}

TEST_F(FakeProvider, MatchesALeaseOfTheSameImageThatMayBeReused) {
  const bj::object config = json(R"({"provider": "fake", "image": "i", "reuseLease": true})");
  const auto matches = [&](std::optional<std::string> id, std::string_view metadata) {
    return fake_.matches(config, {.provider_lease_id = std::move(id), .metadata = json(metadata)});
  };
  EXPECT_TRUE(matches("id", R"({"provider": "fake", "image": "i", "reuseLease": true})"));
  EXPECT_FALSE(matches("", R"({"provider": "fake", "image": "i", "reuseLease": true})"));
  EXPECT_FALSE(matches({}, R"({"provider": "fake", "image": "i", "reuseLease": true})"));
  EXPECT_FALSE(matches("id", R"({"provider": "e2b", "image": "i", "reuseLease": true})"));
  EXPECT_FALSE(matches("id", R"({"provider": "fake", "image": "i", "reuseLease": "true"})"));
  EXPECT_FALSE(matches("id", R"({"provider": "fake", "image": "i", "reuseLease": 1})"));
  EXPECT_FALSE(matches("id", R"({"provider": "fake", "image": "i"})"));
  EXPECT_FALSE(matches("id", R"({"provider": "fake", "image": "j", "reuseLease": true})"));
}

TEST_F(FakeProvider, FindsItsConfigInItsOwnMetadataOnly) {
  EXPECT_EQ(fake_.config_from(json(R"({"provider": "fake", "image": "i", "reuseLease": true,
                                       "driver": "sandbox"})")),
            json(R"({"provider": "fake", "image": "i", "reuseLease": true})"));
  EXPECT_EQ(fake_.config_from(json(R"({"provider": "fake", "image": "i", "reuseLease": "yes"})")),
            json(R"({"provider": "fake", "image": "i", "reuseLease": false})"));
  EXPECT_EQ(fake_.config_from(json(R"({"provider": "fake", "image": 7})")), std::nullopt);
  EXPECT_EQ(fake_.config_from(json(R"({"provider": "fake"})")), std::nullopt);
  EXPECT_EQ(fake_.config_from(json(R"({"provider": "e2b", "image": "i"})")), std::nullopt);
}

class BuiltIn : public testing::Test {
 protected:
  BuiltIn() {
    providers_.add(std::make_unique<Fake>(random_, clock_));
    providers_.add(std::make_unique<Forgetful>(calls_));
  }
  SeededRandom random_{1};
  FakeClock clock_;
  std::vector<std::string> calls_;
  BuiltInProviders providers_;
};

TEST_F(BuiltIn, ProviderThatIsNoneIsRefusedByName) {
  EXPECT_TRUE(providers_.contains("fake"));
  ASSERT_TRUE(providers_.find("fake"));
  EXPECT_EQ((*providers_.find("fake"))->key(), "fake");
  const auto missing = providers_.find("e2b");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::provider_unavailable);
  EXPECT_EQ(missing.error().message,
            R"(Sandbox provider "e2b" is not registered as a built-in provider.)");
  EXPECT_FALSE(await(providers_.acquire({.config = json(R"({"provider": "e2b"})")}, {})));
}

TEST_F(BuiltIn, LeaseIsResumedFirstWhereTheConfigLetsItAndAnIdIsKnown) {
  const auto lease = await(providers_.acquire(
      {.config = json(R"({"provider": "fake", "reuseLease": true})")}, std::string{"old"}));
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->resumed);
  EXPECT_EQ(lease->provider_lease_id, "old");
}

TEST_F(BuiltIn, LeaseIsMadeAfreshWhenItIsGone) {
  const auto lease = await(providers_.acquire(
      {.config = json(R"({"provider": "forgetful", "reuseLease": true})")}, std::string{"old"}));
  ASSERT_TRUE(lease);
  EXPECT_FALSE(lease->resumed);
  EXPECT_EQ(lease->provider_lease_id, "fresh");
  EXPECT_EQ(calls_, (std::vector<std::string>{"resume old", "acquire"}));
}

TEST_F(BuiltIn, LeaseIsMadeAfreshWithoutAnIdOrWithoutTheConfigsWord) {
  EXPECT_TRUE(await(providers_.acquire(
      {.config = json(R"({"provider": "forgetful", "reuseLease": true})")}, std::nullopt)));
  EXPECT_TRUE(await(
      providers_.acquire({.config = json(R"({"provider": "forgetful"})")}, std::string{"old"})));
  EXPECT_EQ(calls_, (std::vector<std::string>{"acquire", "acquire"}));
}

TEST_F(BuiltIn, FirstReusableLeaseInTheGivenOrderIsFound) {
  const bj::object config = json(R"({"provider": "fake", "image": "i", "reuseLease": true})");
  const std::vector<ReusableLease> candidates{
      {.provider_lease_id = "other-image",
       .metadata = json(R"({"provider": "fake", "image": "j", "reuseLease": true})")},
      {.provider_lease_id = "first", .metadata = config},
      {.provider_lease_id = "second", .metadata = config}};
  EXPECT_EQ(providers_.find_reusable(config, candidates), "first");
  EXPECT_EQ(providers_.find_reusable(config, std::span{candidates}.first(1)), std::nullopt);
}

TEST_F(BuiltIn, LeaseOfAPluginsProviderIsReusableWhenItHasEveryValueOfTheConfig) {
  const bj::object config = json(
      R"({"provider": "e2b", "reuseLease": true, "template": {"b": [1, 2], "a": 1}, "size": 2})");
  const auto finds = [&](std::optional<std::string> id, std::string_view metadata) {
    const ReusableLease lease{.provider_lease_id = std::move(id), .metadata = json(metadata)};
    return providers_.find_reusable(config, std::span{&lease, 1}).has_value();
  };
  EXPECT_TRUE(finds("id", R"({"provider": "e2b", "reuseLease": true, "size": 2, "more": 1,
                              "template": {"a": 1, "b": [1, 2]}})"));
  EXPECT_FALSE(finds("", R"({"provider": "e2b", "reuseLease": true, "size": 2,
                             "template": {"a": 1, "b": [1, 2]}})"));
  EXPECT_FALSE(finds({}, R"({"provider": "e2b", "reuseLease": true, "size": 2,
                             "template": {"a": 1, "b": [1, 2]}})"));
  EXPECT_FALSE(finds("id", R"({"provider": "daytona", "reuseLease": true, "size": 2,
                               "template": {"a": 1, "b": [1, 2]}})"));
  EXPECT_FALSE(finds("id", R"({"provider": "e2b", "reuseLease": 1, "size": 2,
                               "template": {"a": 1, "b": [1, 2]}})"));
  EXPECT_FALSE(finds("id", R"({"provider": "e2b", "reuseLease": true, "size": 2,
                               "template": {"a": 1, "b": [2, 1]}})"));
  EXPECT_FALSE(finds("id", R"({"provider": "e2b", "reuseLease": true,
                               "template": {"a": 1, "b": [1, 2]}})"));
}

TEST_F(BuiltIn, ConfigComesBackFromMetadataStrictlyOnlyForBuiltInProviders) {
  EXPECT_EQ(providers_.strict_config_from(json(R"({"provider": "fake", "image": "i"})")),
            json(R"({"provider": "fake", "image": "i", "reuseLease": false})"));
  EXPECT_EQ(providers_.strict_config_from(json(R"({"provider": "e2b", "image": "i"})")),
            std::nullopt);
  EXPECT_EQ(providers_.strict_config_from(json(R"({"image": "i"})")), std::nullopt);
}

TEST_F(BuiltIn, ConfigComesBackFromMetadataLooselyForAnyProvider) {
  EXPECT_EQ(providers_.loose_config_from(json(R"({"provider": "fake", "image": "i", "x": 1})")),
            json(R"({"provider": "fake", "image": "i", "reuseLease": false})"));
  EXPECT_EQ(providers_.loose_config_from(json(R"({"provider": "fake"})")), std::nullopt);
  EXPECT_EQ(providers_.loose_config_from(
                json(R"({"provider": "e2b", "apiKey": "an-id", "reuseLease": true})")),
            json(R"({"provider": "e2b", "apiKey": "an-id", "reuseLease": true})"));
  EXPECT_EQ(providers_.loose_config_from(json(R"({"provider": "e2b", "reuseLease": "yes"})")),
            json(R"({"provider": "e2b", "reuseLease": false})"));
  EXPECT_EQ(providers_.loose_config_from(json(R"({"image": "i"})")), std::nullopt);
  EXPECT_EQ(providers_.loose_config_from(json(R"({"provider": 3})")), std::nullopt);
}

}  // namespace
}  // namespace berth::providers
