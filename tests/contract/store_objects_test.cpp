#include "contract/store_fixture.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/secrets.hpp"
#include "store/tokens.hpp"

// Companies, agents, environments and leases.
namespace berth::store {
namespace {

using core::Reach;

using Companies = StoreContract;
using Agents = StoreContract;
using Environments = StoreContract;
using Leases = StoreContract;
BERTH_ON_BOTH_ENGINES(Companies);
BERTH_ON_BOTH_ENGINES(Agents);
BERTH_ON_BOTH_ENGINES(Environments);
BERTH_ON_BOTH_ENGINES(Leases);

TEST_P(Companies, ComeBackAsTheyWere) {
  core::Company made = company("\u00dcber \"quoted\"");
  made.description = "";
  EXPECT_WORKS(write([&](Session& s) { return insert_company(s, made); }));
  const auto found =
      read([&](Session& s) { return find_company(s, Reach::everything(), made.id); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, 1);
  EXPECT_EQ(encode_text(found->value), encode_text(made));
}

TEST_P(Companies, AForeignOneCannotBeToldFromAMissingOne) {
  const core::Company acme = given_company("Acme");
  const core::Company other = given_company("Other");
  const auto find = [&](const core::CompanyId& id) {
    return read([&](Session& s) { return find_company(s, Reach::only(acme.id), id); });
  };
  EXPECT_WORKS(find(acme.id));
  const auto foreign = find(other.id);
  const auto missing = find(fresh<core::CompanyId>());
  ASSERT_FALSE(foreign || missing);
  EXPECT_EQ(foreign.error(), missing.error());
  EXPECT_EQ(name_of(foreign.error().code), name_of(Errc::company_not_found));
}

TEST_P(Companies, AreListedWithinReachOnly) {
  const core::Company acme = given_company("Acme");
  given_company("Other");
  const auto list = [&](const Reach& reach) {
    return read([&](Session& s) { return list_companies(s, reach, {}); })->rows.size();
  };
  EXPECT_EQ(list(Reach::everything()), 2U);
  EXPECT_EQ(list(Reach::only(acme.id)), 1U);
  EXPECT_EQ(*read([&](Session& s) { return count_companies(s); }), 2);
}

TEST_P(Companies, AChangeOfAnOldVersionIsAConflict) {
  const core::Company acme = given_company();
  Stored<core::Company> row{acme, 1};
  row.value.name = "first";
  EXPECT_WORKS(write([&](Session& s) { return update_company(s, row); }));
  row.value.name = "second";
  EXPECT_FAILS(write([&](Session& s) { return update_company(s, row); }), Errc::conflict);
  const auto found =
      read([&](Session& s) { return find_company(s, Reach::everything(), acme.id); });
  EXPECT_EQ(found->value.name, "first");
  EXPECT_EQ(found->version, 2);
}

TEST_P(Companies, DeletionTakesEverythingThatBelongsToOne) {
  const core::Company acme = given_company("Acme");
  const core::Company other = given_company("Other");
  for (const core::Company& owner : {acme, other}) {
    const core::Environment box = given_environment(owner.id, "box");
    const core::SecretRecord key = given_secret(owner.id, "key");
    core::Agent ada = agent(owner.id);
    ada.default_environment_id = box.id;
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      BERTH_DO(insert_agent(s, ada));
      BERTH_DO(insert_lease(s, lease(box, core::LeaseState::released)));
      BERTH_DO(insert_version(s, version(key.id, 1)));
      BERTH_DO(insert_access_event(s, access_event(key)));
      Stored<core::Company> row{owner, 1};
      row.value.default_environment_id = box.id;
      return update_company(s, row);
    }));
    core::Token of_agent = token(owner.id);
    of_agent.agent_id = ada.id;
    EXPECT_WORKS(write([&](Session& s) { return insert_token(s, of_agent, of_agent.id.str()); }));
  }
  EXPECT_WORKS(write([&](Session& s) { return delete_company(s, acme.id); }));
  for (const char* table :
       {"companies", "environments", "agents", "environment_leases", "company_secrets",
        "company_secret_versions", "secret_access_events", "tokens"}) {
    EXPECT_EQ(number(std::string{"select count(*) from "} + table), 1) << table;
  }
}

TEST_P(Companies, WithALeaseThatIsNotFinishedStay) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  for (const core::LeaseState state : all<core::LeaseState>()) {
    EXPECT_WORKS(write([&](Session& s) -> Result<> {
      BERTH_DO(s.run("delete from environment_leases", {}));
      return insert_lease(s, lease(box, state));
    }));
    if (core::is_final(state)) continue;
    EXPECT_FAILS(write([&](Session& s) { return delete_company(s, acme.id); }),
                 Errc::company_in_use)
        << name_of(state);
  }
  EXPECT_WORKS(write([&](Session& s) { return delete_company(s, acme.id); }));
  EXPECT_FAILS(write([&](Session& s) { return delete_company(s, acme.id); }),
               Errc::company_not_found);
}

TEST_P(Agents, AreFoundChangedAndDeleted) {
  const core::Company acme = given_company();
  core::Agent ada = agent(acme.id);
  ada.metadata = bj::object{{"k", 1}};
  ada.last_heartbeat_at = now();
  EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, ada); }));
  const auto find = [&](const Reach& reach) {
    return read([&](Session& s) { return find_agent(s, reach, ada.id); });
  };
  auto found = find(Reach::only(acme.id));
  ASSERT_TRUE(found);
  EXPECT_EQ(encode_text(found->value), encode_text(ada));
  EXPECT_FAILS(find(Reach::only(fresh<core::CompanyId>())), Errc::agent_not_found);

  found->value.name = "Grace";
  EXPECT_WORKS(write([&](Session& s) { return update_agent(s, *found); }));
  EXPECT_FAILS(write([&](Session& s) { return update_agent(s, *found); }), Errc::conflict);
  EXPECT_EQ(read([&](Session& s) { return list_agents(s, acme.id, {}); })->rows.size(), 1U);

  EXPECT_WORKS(write([&](Session& s) { return delete_agent(s, ada.id); }));
  EXPECT_FAILS(write([&](Session& s) { return delete_agent(s, ada.id); }), Errc::agent_not_found);
}

TEST_P(Agents, DeletionEndsTheirKeysAndBindings) {
  const core::Company acme = given_company();
  const core::SecretRecord key = given_secret(acme.id, "key");
  const core::Agent ada = agent(acme.id);
  core::Token of_ada = token(acme.id);
  of_ada.agent_id = ada.id;
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_agent(s, ada));
    BERTH_DO(insert_token(s, of_ada, "hash"));
    return replace_bindings(s, {core::SecretTarget::agent, ada.id.str(), "", ""},
                            {binding(key, core::SecretTarget::agent, ada.id.str(), "env.X")});
  }));
  EXPECT_WORKS(write([&](Session& s) { return delete_agent(s, ada.id); }));
  EXPECT_FALSE(*read([&](Session& s) { return find_token_by_hash(s, "hash", now()); }));
  EXPECT_TRUE(read([&](Session& s) { return bindings_of_secret(s, key.id); })->empty());
}

TEST_P(Agents, OfAnEnvironmentThatIsGoneAreAConflict) {
  core::Agent ada = agent(given_company().id);
  ada.default_environment_id = fresh<core::EnvironmentId>();
  EXPECT_FAILS(write([&](Session& s) { return insert_agent(s, ada); }), Errc::conflict);
}

TEST_P(Environments, ComeBackAsTheyWere) {
  const core::Company acme = given_company();
  core::Environment box = environment(acme.id, "box");
  box.metadata = bj::object{{"a", {1, 2}}};
  EXPECT_WORKS(write([&](Session& s) { return insert_environment(s, box); }));
  const auto found =
      read([&](Session& s) { return find_environment(s, Reach::only(acme.id), box.id); });
  ASSERT_TRUE(found);
  EXPECT_EQ(encode_text(found->value), encode_text(box));
}

TEST_P(Environments, AForeignOneCannotBeToldFromAMissingOne) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const Reach other = Reach::only(given_company("Other").id);
  const auto find = [&](const core::EnvironmentId& id) {
    return read([&](Session& s) { return find_environment(s, other, id); }).error();
  };
  EXPECT_EQ(find(box.id), find(fresh<core::EnvironmentId>()));
  EXPECT_EQ(find(box.id).message, "Environment not found");
}

TEST_P(Environments, ANameIsTakenOncePerCompany) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::Environment twin = environment(acme.id, "box");
  const auto refused = write([&](Session& s) { return insert_environment(s, twin); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(name_of(refused.error().code), name_of(Errc::environment_name_taken));
  EXPECT_EQ(refused.error().message,
            "An environment named \"box\" already exists for this company.");

  given_environment(given_company("Other").id, "box");
  Stored<core::Environment> second{given_environment(acme.id, "second"), 1};
  second.value.name = "box";
  EXPECT_FAILS(write([&](Session& s) { return update_environment(s, second); }),
               Errc::environment_name_taken);
}

TEST_P(Environments, ACompanyHasOneLocal) {
  const core::Company acme = given_company();
  EXPECT_FALSE(*read([&](Session& s) { return find_local_environment(s, acme.id); }));
  const core::Environment local = local_environment(acme.id);
  EXPECT_WORKS(write([&](Session& s) { return insert_environment(s, local); }));
  core::Environment second = local_environment(acme.id);
  second.name = "Another";
  const auto refused = write([&](Session& s) { return insert_environment(s, second); });
  ASSERT_FALSE(refused);
  EXPECT_EQ(name_of(refused.error().code), name_of(Errc::environment_local_exists));
  EXPECT_EQ(refused.error().message, "A local environment already exists for this company.");
  const auto found = read([&](Session& s) { return find_local_environment(s, acme.id); });
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->value.id, local.id);
}

TEST_P(Environments, OfACompanyThatIsGoneAreRefused) {
  const core::Environment box = environment(fresh<core::CompanyId>(), "box");
  EXPECT_FAILS(write([&](Session& s) { return insert_environment(s, box); }),
               Errc::company_not_found);
}

TEST_P(Environments, TwoEditorsCannotOverwriteEachOther) {
  const core::Environment box = given_environment(given_company().id, "box");
  Stored<core::Environment> mine{box, 1};
  Stored<core::Environment> yours{box, 1};
  mine.value.status = core::EnvironmentStatus::archived;
  yours.value.description = std::nullopt;
  EXPECT_WORKS(write([&](Session& s) { return update_environment(s, mine); }));
  EXPECT_FAILS(write([&](Session& s) { return update_environment(s, yours); }), Errc::conflict);
}

TEST_P(Environments, FiltersAreExact) {
  const core::Company acme = given_company();
  given_environment(acme.id, "a");
  Stored<core::Environment> b{given_environment(acme.id, "b"), 1};
  b.value.status = core::EnvironmentStatus::archived;
  EXPECT_WORKS(write([&](Session& s) { return update_environment(s, b); }));
  EXPECT_WORKS(
      write([&](Session& s) { return insert_environment(s, local_environment(acme.id)); }));
  const auto count = [&](EnvironmentFilter filter) {
    return read([&](Session& s) { return list_environments(s, acme.id, filter, {}); })->rows.size();
  };
  using core::DriverKind;
  using core::EnvironmentStatus;
  EXPECT_EQ(count({}), 3U);
  EXPECT_EQ(count({.driver = DriverKind::ssh, .status = {}}), 2U);
  EXPECT_EQ(count({.driver = {}, .status = EnvironmentStatus::active}), 2U);
  EXPECT_EQ(count({.driver = DriverKind::ssh, .status = EnvironmentStatus::archived}), 1U);
  EXPECT_EQ(count({.driver = DriverKind::plugin, .status = {}}), 0U);
}

TEST_P(Environments, DeletionClearsSelectionsAndBindingsAndKeepsLeases) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::SecretRecord key = given_secret(acme.id, "key");
  core::Agent ada = agent(acme.id);
  ada.default_environment_id = box.id;
  const core::LeaseRecord held = lease(box, core::LeaseState::active);
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_agent(s, ada));
    BERTH_DO(insert_lease(s, held));
    return replace_bindings(
        s, {core::SecretTarget::environment, box.id.str(), "", ""},
        {binding(key, core::SecretTarget::environment, box.id.str(), "privateKey")});
  }));
  EXPECT_TRUE(*write([&](Session& s) { return delete_environment(s, box.id); }));
  const Reach reach = Reach::only(acme.id);
  EXPECT_FAILS(read([&](Session& s) { return find_environment(s, reach, box.id); }),
               Errc::environment_not_found);
  const auto agent_row = read([&](Session& s) { return find_agent(s, reach, ada.id); });
  EXPECT_FALSE(agent_row->value.default_environment_id);
  EXPECT_EQ(agent_row->version, 2) << "who read the old selection must not write it back";
  const auto lease_row = read([&](Session& s) { return find_lease(s, reach, held.id); });
  ASSERT_TRUE(lease_row);
  EXPECT_FALSE(lease_row->value.environment_id);
  EXPECT_TRUE(read([&](Session& s) { return bindings_of_secret(s, key.id); })->empty());
}

TEST_P(Environments, WhatBlocksDeletionLeavesEverythingAsItWas) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  core::Agent ada = agent(acme.id);
  ada.default_environment_id = box.id;
  EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, ada); }));

  const auto expect_blocked = [&](const char* why) {
    EXPECT_FALSE(*write([&](Session& s) { return delete_environment(s, box.id); })) << why;
    const auto row = read([&](Session& s) { return find_agent(s, Reach::everything(), ada.id); });
    EXPECT_EQ(row->value.default_environment_id, box.id) << why;
  };
  EXPECT_WORKS(write(
      [&](Session& s) { return insert_lease(s, lease(box, core::LeaseState::pending_cleanup)); }));
  expect_blocked("lease");
  EXPECT_WORKS(write([&](Session& s) { return s.run("delete from environment_leases", {}); }));
  for (const core::SandboxState state : all<core::SandboxState>()) {
    if (core::is_final(state)) continue;
    EXPECT_WORKS(write([&](Session& s) { return insert_sandbox(s, sandbox(box, state)); }));
    expect_blocked("sandbox");
    EXPECT_WORKS(write([&](Session& s) { return s.run("delete from sandboxes", {}); }));
  }
  Stored<core::Company> with_default{acme, 1};
  with_default.value.default_environment_id = box.id;
  EXPECT_WORKS(write([&](Session& s) { return update_company(s, with_default); }));
  expect_blocked("company default");

  const core::Environment local = local_environment(acme.id);
  EXPECT_WORKS(write([&](Session& s) { return insert_environment(s, local); }));
  EXPECT_FALSE(*write([&](Session& s) { return delete_environment(s, local.id); }));
}

TEST_P(Environments, WhatGoesByItselfDoesNotBlockDeletion) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  core::LeaseRecord released = lease(box, core::LeaseState::released);
  released.lease_policy = core::LeasePolicy::reuse_by_environment;
  core::Sandbox held = sandbox(box, core::SandboxState::leased);
  core::LeaseRecord holder = lease(box, core::LeaseState::active);
  held.lease_id = holder.id;
  holder.sandbox_id = held.id;
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_lease(s, released));
    BERTH_DO(insert_sandbox(s, sandbox(box, core::SandboxState::destroyed)));
    BERTH_DO(insert_sandbox(s, sandbox(box, core::SandboxState::lost)));
    BERTH_DO(insert_sandbox(s, held));
    return insert_lease(s, holder);
  }));
  EXPECT_EQ(read([&](Session& s) { return environment_use(s, box); })->reusable_sandboxes, 0);
  EXPECT_TRUE(*write([&](Session& s) { return delete_environment(s, box.id); }));
  EXPECT_EQ(number("select count(*) from sandboxes where environment_id is null"), 3);
}

TEST_P(Environments, UseIsCounted) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::SecretRecord key = given_secret(acme.id, "key");
  core::Agent ada = agent(acme.id);
  ada.default_environment_id = box.id;
  Stored<core::Company> with_default{acme, 1};
  with_default.value.default_environment_id = box.id;
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_agent(s, ada));
    BERTH_DO(insert_sandbox(s, sandbox(box, core::SandboxState::idle)));
    BERTH_DO(insert_lease(s, lease(box, core::LeaseState::pending_cleanup)));
    BERTH_DO(insert_lease(s, lease(box, core::LeaseState::acquiring)));
    BERTH_DO(insert_lease(s, lease(box, core::LeaseState::active)));
    BERTH_DO(insert_lease(s, lease(box, core::LeaseState::failed)));
    BERTH_DO(update_company(s, with_default));
    return replace_bindings(s, {core::SecretTarget::environment, box.id.str(), "", ""},
                            {binding(key, core::SecretTarget::environment, box.id.str(), "a"),
                             binding(key, core::SecretTarget::environment, box.id.str(), "b")});
  }));
  const auto use = read([&](Session& s) { return environment_use(s, box); });
  ASSERT_TRUE(use) << use.error().message;
  EXPECT_EQ(use->pending_cleanup_leases, 1);
  EXPECT_EQ(use->reusable_sandboxes, 1);
  EXPECT_EQ(use->live_leases, 2);
  EXPECT_EQ(use->agent_defaults, 1);
  EXPECT_EQ(use->secret_bindings, 2);
  EXPECT_TRUE(use->is_company_default);
}

TEST_P(Leases, AreFoundWithinReachAndListedByState) {
  const core::Company acme = given_company();
  const core::Environment box = given_environment(acme.id, "box");
  const core::LeaseRecord active = lease(box, core::LeaseState::active);
  EXPECT_WORKS(write([&](Session& s) -> Result<> {
    BERTH_DO(insert_lease(s, lease(box, core::LeaseState::failed)));
    return insert_lease(s, active);
  }));
  const auto count = [&](std::optional<core::LeaseState> state) {
    return read([&](Session& s) { return list_leases(s, box.id, state, {}); })->rows.size();
  };
  EXPECT_EQ(count({}), 2U);
  EXPECT_EQ(count(core::LeaseState::active), 1U);
  EXPECT_EQ(count(core::LeaseState::expired), 0U);
  const auto find = [&](const Reach& reach) {
    return read([&](Session& s) { return find_lease(s, reach, active.id); });
  };
  EXPECT_EQ(encode_text(find(Reach::only(acme.id))->value), encode_text<core::Lease>(active));
  EXPECT_FAILS(find(Reach::only(fresh<core::CompanyId>())), Errc::lease_not_found);
}

TEST_P(Leases, OfAnEnvironmentThatIsGoneAreRefused) {
  const core::Company acme = given_company();
  const core::LeaseRecord homeless =
      lease(environment(acme.id, "never inserted"), core::LeaseState::acquiring);
  EXPECT_FAILS(write([&](Session& s) { return insert_lease(s, homeless); }),
               Errc::environment_not_found);
}

}  // namespace
}  // namespace berth::store
