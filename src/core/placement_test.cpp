#include "core/placement.hpp"

#include <gtest/gtest.h>

namespace berth::core {
namespace {

using Facts = std::map<std::string, std::vector<std::string>>;

Environment environment(DriverKind driver, bj::object config = {}) {
  SeededRandom random{1};
  return {.id = EnvironmentId::make(random, Time{1}),
          .company_id = CompanyId::make(random, Time{1}),
          .name = "Place",
          .description = {},
          .driver = driver,
          .status = EnvironmentStatus::active,
          .config = std::move(config),
          .env_vars = {},
          .metadata = {},
          .created_at = {},
          .updated_at = {}};
}

Environment sandbox_environment(const char* provider) {
  return environment(DriverKind::sandbox, {{"provider", provider}});
}

const std::vector<DriverKind> usual{DriverKind::local, DriverKind::ssh, DriverKind::sandbox,
                                    DriverKind::plugin};
const std::vector<ProviderFacts> providers{{.key = "fake", .runs_work = false},
                                           {.key = "linux", .runs_work = true},
                                           {.key = "e2b", .runs_work = true},
                                           {.key = "broken", .runs_work = false}};

TEST(Selection, AcceptsExactlyTheAllowedDrivers) {
  for (const DriverKind driver : all<DriverKind>()) {
    const Environment place =
        driver == DriverKind::sandbox ? sandbox_environment("linux") : environment(driver);
    for (const DriverKind allowed : all<DriverKind>()) {
      EXPECT_EQ(check_selection(place, {allowed}, providers).has_value(), driver == allowed)
          << name_of(driver) << " where " << name_of(allowed) << " is allowed";
    }
  }
}

TEST(Selection, NamesTheDriverAndThoseThatAreAllowed) {
  const std::vector<DriverKind> some{DriverKind::local, DriverKind::ssh};
  const Result<> done = check_selection(environment(DriverKind::plugin), some, providers);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Errc::unprocessable);
  EXPECT_EQ(done.error().message,
            "Environment driver \"plugin\" is not allowed here. Allowed drivers: local, ssh");
  EXPECT_EQ(done.error().facts, (Facts{{"allowedDrivers", {"local", "ssh"}}}));
}

TEST(Selection, RefusesAnArchivedEnvironmentBeforeAllElse) {
  for (const DriverKind driver : all<DriverKind>()) {
    Environment place = environment(driver);
    place.status = EnvironmentStatus::archived;
    const Result<> done = check_selection(place, {}, {});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "Environment is archived.");
  }
}

TEST(Selection, RefusesTheFakeProviderEvenWhereItIsListedAsWorking) {
  const std::vector<ProviderFacts> lying{{.key = "fake", .runs_work = true}};
  for (const Environment& place :
       {sandbox_environment("fake"), sandbox_environment(" "), sandbox_environment("  fake "),
        environment(DriverKind::sandbox)}) {
    const Result<> done = check_selection(place, usual, lying);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message,
              "Environment sandbox provider \"fake\" is not allowed here. The built-in fake "
              "provider is probe-only and cannot execute runs.");
  }
}

TEST(Selection, NamesTheProviderAndThoseThatRunWork) {
  for (const char* key : {"daytona", "broken"}) {
    const Result<> done = check_selection(sandbox_environment(key), usual, providers);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "Environment sandbox provider \"" + std::string{key} +
                                        "\" is not allowed here. Allowed providers: linux, e2b");
    EXPECT_EQ(done.error().facts, (Facts{{"allowedProviders", {"linux", "e2b"}}}));
  }
  EXPECT_EQ(check_selection(sandbox_environment("linux"), usual, {}).error().message,
            "Environment sandbox provider \"linux\" is not allowed here. Allowed providers: none");
  EXPECT_TRUE(check_selection(sandbox_environment("e2b"), usual, providers));
}

TEST(Fit, EveryAdapterRunsThroughEveryDriver) {
  for (const AdapterType adapter : all<AdapterType>()) {
    EXPECT_EQ(drivers_for(adapter), usual) << name_of(adapter);
    EXPECT_TRUE(check_fit(adapter, environment(DriverKind::local), providers));
    EXPECT_TRUE(check_fit(adapter, environment(DriverKind::ssh), providers));
    EXPECT_TRUE(check_fit(adapter, sandbox_environment("linux"), providers));
    EXPECT_TRUE(check_fit(adapter, environment(DriverKind::plugin), providers));
  }
}

TEST(Fit, HasACodeOfItsOwnAndTheSameReason) {
  for (const AdapterType adapter : all<AdapterType>()) {
    for (const Environment& place :
         {sandbox_environment("nobody's"), sandbox_environment("fake")}) {
      const Result<> fits = check_fit(adapter, place, providers);
      ASSERT_FALSE(fits);
      EXPECT_EQ(fits.error().code, Errc::unsupported_adapter_environment);
      EXPECT_EQ(fits.error().message,
                check_selection(place, drivers_for(adapter), providers).error().message);
    }
  }
}

TEST(Choice, IsTheFirstWishInTheOrderRunWorkspaceAgentCompany) {
  SeededRandom random{1};
  std::vector<EnvironmentId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(EnvironmentId::make(random, Time{i}));
  constexpr ChoiceReason reasons[] = {ChoiceReason::run, ChoiceReason::workspace,
                                      ChoiceReason::agent_default, ChoiceReason::company_default};
  std::optional<EnvironmentId> EnvironmentWishes::* const requests[] = {
      &EnvironmentWishes::run, &EnvironmentWishes::workspace, &EnvironmentWishes::agent_default,
      &EnvironmentWishes::company_default};
  for (unsigned there = 0; there < 16; ++there) {
    EnvironmentWishes wanted;
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < 4; ++i) {
      if ((there & (1U << i)) == 0) continue;
      wanted.*requests[i] = ids[i];
      if (!first) first = i;
    }
    const EnvironmentChoice choice = choose_environment(wanted);
    EXPECT_EQ(choice.reason, first ? reasons[*first] : ChoiceReason::local) << there;
    EXPECT_EQ(choice.id, first ? std::optional{ids[*first]} : std::nullopt) << there;
  }
}

TEST(Choice, OfAnAgentIsTheRunItCallsFromOrADefaultAndNeverLocal) {
  SeededRandom random{1};
  const EnvironmentId here = EnvironmentId::make(random, Time{1});
  const EnvironmentId hers = EnvironmentId::make(random, Time{2});
  const EnvironmentId own = EnvironmentId::make(random, Time{3});
  const auto expect = [](const EnvironmentWishes& requests, const EnvironmentId& id,
                         ChoiceReason reason) {
    const Result<EnvironmentChoice> choice = choose_for_agent(requests);
    ASSERT_TRUE(choice) << choice.error().message;
    EXPECT_EQ(choice->id, id);
    EXPECT_EQ(name_of(choice->reason), name_of(reason));
  };
  expect({.calling_run = here, .run = own, .agent_default = hers, .company_default = own}, here,
         ChoiceReason::calling_run);
  expect({.agent_default = hers, .company_default = own}, hers, ChoiceReason::agent_default);
  expect({.run = hers, .company_default = own}, own, ChoiceReason::company_default);
  for (const EnvironmentWishes& without : {EnvironmentWishes{}, EnvironmentWishes{.run = own}}) {
    const Result<EnvironmentChoice> refused = choose_for_agent(without);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::forbidden);
    EXPECT_TRUE(refused.error().remedy.contains("berth agent update")) << refused.error().remedy;
  }
}

}  // namespace
}  // namespace berth::core
