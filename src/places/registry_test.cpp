#include "places/registry.hpp"

#include "base/clock.hpp"
#include "places/fake/fake.hpp"
#include "places/lacks.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace berth::places {
namespace {

const core::LeaseId lease_id = *core::LeaseId::parse("0190163d-8694-739b-aea5-966c26f8ad93");
const core::CompanyId company_id = *core::CompanyId::parse("0190163d-8694-739b-aea5-966c26f8ad94");
const core::EnvironmentId environment_id =
    *core::EnvironmentId::parse("0190163d-8694-739b-aea5-966c26f8ad91");

bj::object json(std::string_view text) {
  return parse_json(text)->as_object();
}

PlaceRef lease(std::string_view config, core::DriverKind driver = core::DriverKind::sandbox) {
  return {.key = lease_id,
          .driver = driver,
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

// Every operation but probe, to show that a refusing place refuses each.
std::vector<Result<>> all_verbs(Place& place, const PlaceRef& facts) {
  const auto only_error = [](const auto& result) -> Result<> {
    if (result) return {};
    return std::unexpected(result.error());
  };
  const AcquireRequest request{.lease = facts.clone()};
  return {only_error(await(place.acquire(request))),
          await(place.release(facts, core::LeaseEvent::release_succeeded)),
          await(place.destroy(facts))};
}

TEST(AbsentPlace, RefusesEveryVerbWithTheNameOfThePlugin) {
  Absent place{core::DriverKind::plugin};
  const PlaceRef facts =
      lease(R"({"pluginKey": "acme.cloud", "driverKey": "vm", "driverConfig": {}})",
            core::DriverKind::plugin);
  for (const Result<>& refused : all_verbs(place, facts)) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::provider_unavailable);
    EXPECT_TRUE(refused.error().message.contains("acme.cloud")) << refused.error().message;
    EXPECT_TRUE(refused.error().remedy.contains("acme.cloud")) << refused.error().remedy;
  }
  const auto report = await(place.probe({.lease = facts.clone()}));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ok);
  EXPECT_EQ(report->driver, core::DriverKind::plugin);
  EXPECT_TRUE(report->summary.contains("acme.cloud"));
  ASSERT_EQ(report->steps.size(), 1U);
  EXPECT_EQ(report->steps[0].code, "provider_unavailable");
}

TEST(AbsentPlace, SaysThatTheNameOfThePluginIsMissing) {
  Absent place{core::DriverKind::plugin};
  const PlaceRef facts = lease("{}", core::DriverKind::plugin);
  for (const Result<>& refused : all_verbs(place, facts)) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::unprocessable);
  }
}

TEST(AbsentPlace, HasNoAbility) {
  const Abilities none = Absent{core::DriverKind::sandbox}.abilities();
  EXPECT_EQ(none.commands, nullptr);
  EXPECT_EQ(none.snapshots, nullptr);
  EXPECT_FALSE(none.found_by_key);
}

TEST(PlaceKeys, NameWhatTheyAreOf) {
  const PlaceKey of_lease{lease_id};
  const PlaceKey of_sandbox{*core::SandboxId::parse("0190163d-8694-739b-aea5-966c26f8ad93")};
  EXPECT_EQ(of_lease.str(), of_sandbox.str());
  EXPECT_NE(of_lease, of_sandbox);
  EXPECT_EQ(of_lease.name(), "lease " + lease_id.str());
  EXPECT_EQ(of_sandbox.name(), "sandbox " + lease_id.str());
  EXPECT_EQ(of_lease.lease(), lease_id);
  EXPECT_EQ(of_sandbox.lease(), std::nullopt);
}

TEST(PlaceRegistry, NamesTheDriverThatIsMissing) {
  Registry registry;
  registry.add(core::DriverKind::plugin, std::make_unique<Absent>(core::DriverKind::plugin));
  EXPECT_TRUE(registry.find(core::DriverKind::plugin, {}));
  for (const core::DriverKind missing : {core::DriverKind::ssh, core::DriverKind::sandbox}) {
    const auto found = registry.find(missing, {});
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().message, "Environment driver \"" + std::string{name_of(missing)} +
                                         "\" is not registered in the environment runtime yet.");
  }
  EXPECT_TRUE(await(registry.close()));
}

// One registry with the provider `fake`, and without plugins.
class SandboxRegistry : public testing::Test {
 protected:
  SandboxRegistry() { registry_.add_provider("fake", std::make_unique<Fake>(random_, clock_)); }
  Place& place(const PlaceRef& facts) { return **registry_.find(facts); }

  SeededRandom random_{1};
  FakeClock clock_;
  Registry registry_;
};

TEST_F(SandboxRegistry, ProbesTheProviderOfTheConfig) {
  const AcquireRequest request{.lease = lease(R"({"image": "i"})")};
  const auto report = await(place(request.lease).probe(request));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->ok);
  EXPECT_EQ(report->driver, core::DriverKind::sandbox);
  EXPECT_EQ(report->summary, "Fake sandbox provider is ready for image i.");
  EXPECT_EQ(report->details, json(R"({"provider": "fake", "image": "i", "reuseLease": false})"));
}

TEST_F(SandboxRegistry, ReportsAProviderThatIsNotThere) {
  const AcquireRequest request{.lease = lease(R"({"provider": "e2b"})")};
  const auto report = await(place(request.lease).probe(request));
  ASSERT_TRUE(report);
  EXPECT_FALSE(report->ok);
  EXPECT_EQ(report->summary,
            R"(Sandbox provider "e2b" is not installed or its plugin worker is not running.)");
  EXPECT_EQ(report->steps.at(0).code, "provider_unavailable");
  EXPECT_EQ(report->details, json(R"({"provider": "e2b"})"));
}

TEST_F(SandboxRegistry, RefusesAProviderThatIsNotThere) {
  const AcquireRequest request{.lease = lease(R"({"provider": "e2b"})")};
  const auto acquired = await(place(request.lease).acquire(request));
  ASSERT_FALSE(acquired);
  EXPECT_EQ(acquired.error().code, Errc::provider_unavailable);
  EXPECT_EQ(acquired.error().message,
            R"(Sandbox provider "e2b" is not registered as a built-in provider.)");
}

TEST_F(SandboxRegistry, ReleasesByTheMetadataWhenTheConfigHasChangedSince) {
  PlaceRef facts = lease(R"({"provider": "e2b"})");
  facts.metadata = json(R"({"provider": "fake", "image": "i", "driver": "sandbox"})");
  EXPECT_TRUE(await(place(facts).release(facts, core::LeaseEvent::release_failed)));
  EXPECT_TRUE(await(place(facts).destroy(facts)));
  facts.metadata = {};
  EXPECT_FALSE(await(place(facts).release(facts, core::LeaseEvent::release_failed)));
}

TEST_F(SandboxRegistry, GivesAllOtherProvidersToPlugins) {
  Absent sandboxes{core::DriverKind::sandbox};
  Absent drivers{core::DriverKind::plugin};
  registry_.add_plugins(sandboxes, drivers);
  EXPECT_EQ(*registry_.find(lease(R"({"provider": "e2b"})")), &sandboxes);
  EXPECT_NE(*registry_.find(lease(R"({"provider": "fake"})")), &sandboxes);
  EXPECT_EQ(*registry_.find(core::DriverKind::plugin, {}), &drivers);
  PlaceRef changed = lease(R"({"provider": "e2b"})");
  changed.metadata = json(R"({"provider": "fake"})");
  EXPECT_EQ(*registry_.find(changed), &sandboxes) << "a plugin may have this name too";
}

TEST_F(SandboxRegistry, OnePlaceMayServeTheWholeDriver) {
  registry_.add(core::DriverKind::sandbox, std::make_unique<Absent>(core::DriverKind::sandbox));
  EXPECT_EQ(*registry_.find(lease(R"({"provider": "fake"})")),
            *registry_.find(lease(R"({"provider": "e2b"})")));
}

TEST(PlaceLacks, AreSaidByKindOfPlace) {
  const auto text = [](Lack what, const PlaceRef& place, const std::string& detail = {}) {
    return lacks(what, place, detail).error().message;
  };
  const std::string name = "lease " + lease_id.str();
  PlaceRef local = lease("{}", core::DriverKind::local);
  EXPECT_EQ(text(Lack::freeze, local), name + ": its place is not a sandbox");
  EXPECT_EQ(text(Lack::usage, local), name + ": its usage is not measured");
  EXPECT_EQ(text(Lack::port, local, "80"),
            name + ": port 80 cannot be forwarded, because its place has no network of its own");
  EXPECT_EQ(lacks(Lack::files, local).error().code, Errc::execution_unsupported);
  EXPECT_NE(lacks(Lack::files, local).error().remedy, "");
  const PlaceRef fake = lease(R"({"provider": "fake"})");
  EXPECT_EQ(text(Lack::commands, fake), R"(provider "fake" cannot run commands)");
  EXPECT_EQ(text(Lack::freeze, fake), R"(Sandbox provider "fake" does not freeze sandboxes.)");
  EXPECT_EQ(text(Lack::template_deletion, fake),
            R"(Sandbox provider "fake" does not delete captured sandboxes.)");
  PlaceRef plugin = lease(R"({"provider": "e2b"})");
  plugin.metadata = json(R"({"pluginId": "p"})");
  EXPECT_EQ(text(Lack::freeze, plugin), name + ": the sandbox of a plugin cannot be frozen");
  EXPECT_EQ(text(Lack::changes, plugin),
            name + ": the sandbox of a plugin cannot be compared with what it started from");
  const Error login = lacks(Lack::login, local, "codex login").error();
  EXPECT_EQ(login.code, Errc::execution_unsupported);
  EXPECT_EQ(login.remedy, "run it there: berth exec -it " + lease_id.str() + " -- codex login");
}

}  // namespace
}  // namespace berth::places
