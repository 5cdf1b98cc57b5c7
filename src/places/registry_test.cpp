#include "places/registry.hpp"

#include "base/clock.hpp"
#include "places/remote/plugin.hpp"
#include "places/sandbox.hpp"
#include "places/fake/fake.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::drivers {
namespace {

const core::LeaseId lease_id = *core::LeaseId::parse("0190163d-8694-739b-aea5-966c26f8ad93");
const core::CompanyId company_id = *core::CompanyId::parse("0190163d-8694-739b-aea5-966c26f8ad94");
const core::EnvironmentId environment_id =
    *core::EnvironmentId::parse("0190163d-8694-739b-aea5-966c26f8ad91");

bj::object json(std::string_view text) {
  return parse_json(text)->as_object();
}

PlaceRef lease(std::string_view config) {
  return {.lease_id = lease_id,
          .company_id = company_id,
          .environment_id = environment_id,
          .config = json(config)};
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

class Untouched final : public OutputTaker {
 public:
  Task<> take(std::span<const OutputPiece> /*pieces*/) override {
    ADD_FAILURE() << "there is no output";
    co_return Result<>{};
  }
};

// Every operation but probe, to show that a refusing driver refuses each.
std::vector<Result<>> all_verbs(Driver& driver, const PlaceRef& facts) {
  const auto only_error = [](const auto& result) -> Result<> {
    if (result) return {};
    return std::unexpected(result.error());
  };
  Untouched taker;
  const AcquireRequest request{.lease = facts.clone()};
  const Command command{.exec_id = "e", .argv = {"true"}, .cwd = "/"};
  const std::optional<std::string> nowhere;
  const std::string exec_id = "e";
  return {only_error(await(driver.acquire(request))),
          only_error(await(driver.realize(facts, nowhere))),
          only_error(await(driver.start(facts, command))),
          only_error(await(driver.follow(facts, exec_id, 0, taker))),
          await(driver.send(facts, exec_id, EndOfInput{})),
          await(driver.cancel(facts, exec_id, 0)),
          await(driver.renew(facts, 1000)),
          await(driver.release(facts, core::LeaseEvent::release_succeeded)),
          await(driver.destroy(facts))};
}

TEST(PluginDriver, RefusesEveryVerbWithTheNameOfThePlugin) {
  Plugin driver;
  const PlaceRef facts =
      lease(R"({"pluginKey": "acme.cloud", "driverKey": "vm", "driverConfig": {}})");
  for (const Result<>& refused : all_verbs(driver, facts)) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::provider_unavailable);
    EXPECT_TRUE(refused.error().message.contains("acme.cloud")) << refused.error().message;
    EXPECT_TRUE(refused.error().remedy.contains("acme.cloud")) << refused.error().remedy;
  }
  const auto report = await(driver.probe({.lease = facts.clone()}));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ok);
  EXPECT_EQ(report->driver, core::DriverKind::plugin);
  EXPECT_TRUE(report->summary.contains("acme.cloud"));
  ASSERT_EQ(report->steps.size(), 1U);
  EXPECT_EQ(report->steps[0].code, "provider_unavailable");
}

TEST(PluginDriver, WithoutANameOfAPluginSaysThatItIsMissing) {
  Plugin driver;
  const PlaceRef facts = lease("{}");
  for (const Result<>& refused : all_verbs(driver, facts)) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::unprocessable);
  }
}

TEST(DriverRegistry, NamesTheDriverThatIsMissing) {
  Registry registry;
  registry.add(core::DriverKind::plugin, std::make_unique<Plugin>());
  EXPECT_TRUE(registry.find(core::DriverKind::plugin));
  const auto missing = registry.find(core::DriverKind::ssh);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            R"(Environment driver "ssh" is not registered in the environment runtime yet.)");
  EXPECT_TRUE(await(registry.close()));
}

class SandboxDriver : public testing::Test {
 protected:
  SandboxDriver() { providers_.add(std::make_unique<providers::Fake>(random_, clock_)); }

  SeededRandom random_{1};
  FakeClock clock_;
  providers::BuiltInProviders providers_;
  Sandbox driver_{providers_};
};

TEST_F(SandboxDriver, ProbesItsProvider) {
  const auto report = await(driver_.probe({.lease = lease(R"({"image": "i"})")}));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ok);
  EXPECT_EQ(report->driver, core::DriverKind::sandbox);
  EXPECT_EQ(report->summary, "Fake sandbox provider is ready for image i.");
  EXPECT_EQ(report->details, json(R"({"provider": "fake", "image": "i", "reuseLease": false})"));
}

TEST_F(SandboxDriver, ReportsAProviderThatIsNotThere) {
  const auto report = await(driver_.probe({.lease = lease(R"({"provider": "e2b"})")}));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ok);
  EXPECT_EQ(report->summary,
            R"(Sandbox provider "e2b" is not installed or its plugin worker is not running.)");
  EXPECT_EQ(report->steps.at(0).code, "provider_unavailable");
}

TEST_F(SandboxDriver, AcquiresFromItsProvider) {
  const auto acquired =
      await(driver_.acquire({.lease = lease(R"({"provider": "fake", "reuseLease": true})")}));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_EQ(acquired->provider, "fake");
  EXPECT_EQ(acquired->provider_lease_id, "sandbox://fake/" + environment_id.str());
  EXPECT_FALSE(acquired->resumed);
  EXPECT_EQ(acquired->metadata,
            json(R"({"provider": "fake", "image": "ubuntu:24.04", "reuseLease": true})"));
}

TEST_F(SandboxDriver, ResumesTheReusableSandboxFirst) {
  const auto acquired =
      await(driver_.acquire({.lease = lease(R"({"provider": "fake", "reuseLease": true})"),
                             .reusable_id = "sandbox://fake/old"}));
  ASSERT_TRUE(acquired) << acquired.error().message;
  EXPECT_TRUE(acquired->resumed);
  EXPECT_EQ(acquired->provider_lease_id, "sandbox://fake/old");
}

TEST_F(SandboxDriver, RefusesAProviderThatIsNotThere) {
  const auto acquired = await(driver_.acquire({.lease = lease(R"({"provider": "e2b"})")}));
  ASSERT_FALSE(acquired);
  EXPECT_EQ(acquired.error().code, Errc::provider_unavailable);
  EXPECT_EQ(acquired.error().message,
            R"(Sandbox provider "e2b" is not registered as a built-in provider.)");
}

TEST_F(SandboxDriver, DoesNotExecute) {
  const PlaceRef facts = lease("{}");
  const auto results = all_verbs(driver_, facts);
  for (const std::size_t executing : {1U, 2U, 3U, 4U}) {
    ASSERT_FALSE(results[executing]);
    EXPECT_EQ(results[executing].error().code, Errc::execution_unsupported);
    EXPECT_EQ(results[executing].error().message, R"(provider "fake" cannot run commands)");
  }
  for (const std::size_t other : {0U, 5U, 6U, 7U, 8U}) EXPECT_TRUE(results[other]) << other;
}

TEST_F(SandboxDriver, ReleasesByTheMetadataWhenTheConfigHasChangedSince) {
  PlaceRef facts = lease(R"({"provider": "e2b"})");
  facts.metadata = json(R"({"provider": "fake", "image": "i", "driver": "sandbox"})");
  EXPECT_TRUE(await(driver_.release(facts, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(driver_.destroy(facts)));
  facts.metadata = {};
  EXPECT_FALSE(await(driver_.release(facts, core::LeaseEvent::release_failed)));
}

}  // namespace
}  // namespace berth::drivers
