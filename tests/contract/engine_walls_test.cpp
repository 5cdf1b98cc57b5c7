#include "contract/work_fixture.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/runs.hpp"

#include <gmock/gmock.h>

// Which callers may use the server's machine without isolation, and where runs started by agents
// go.
namespace berth::engine {
namespace {

using core::Allowance;
using core::ChoiceReason;
using core::DriverKind;
using core::RunState;
using testing::HasSubstr;

CreateEnvironment linux_sandbox(const std::string& name, bj::object config) {
  config["provider"] = "linux";
  return {.name = name,
          .description = std::nullopt,
          .driver = DriverKind::sandbox,
          .status = std::nullopt,
          .config = std::move(config),
          .env_vars = std::nullopt,
          .metadata = std::nullopt};
}

class AgentPlaces : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().use_boxes();
    box_ = put_boxes({{"image", "one"}});
    CreateAgent wanted;
    wanted.name = "Ada";
    wanted.adapter_type = core::AdapterType::process;
    wanted.adapter_config = bj::object{{"command", "sleep"}, {"args", bj::array{"600"}}};
    // So that a woken run waits in the queue while its caller is running.
    wanted.runtime_config = bj::object{{"heartbeat", bj::object{{"maxConcurrentRuns", 1}}}};
    const auto made = await(server()->agents.create(admin(), *company_, std::move(wanted)));
    ASSERT_TRUE(made) << made.error().message;
    ada_ = made->value.id;
  }

  core::Call key() const {
    return {.who = {.kind = core::CallerKind::agent_key, .company_id = company_, .agent_id = ada_}};
  }
  core::Call token_of(const core::RunId& run) const {
    core::Call call = key();
    call.who.run_id = run;
    return call;
  }
  Result<core::Run> wake(const core::Call& call, InvokeAgent wanted = {}) {
    hand_.turn(1ms);
    return await(server()->runs.invoke(call, *ada_, std::move(wanted)));
  }
  // A run that an operator has started in the box.
  core::RunId run_in_box() {
    const auto run = wake(admin(), {.environment_id = box_->id});
    EXPECT_WORKS(run);
    reaches(run->id, RunState::running);
    return run->id;
  }
  void end(const core::RunId& id) {
    EXPECT_WORKS(await(server()->runs.cancel(admin(), id)));
    ended(id);
  }
  void change(UpdateEnvironment change) {
    EXPECT_WORKS(await(server()->environments.update(admin(), box_->id, std::move(change))));
  }
  void set_company_default(std::optional<core::EnvironmentId> id) {
    UpdateCompany change;
    change.default_environment_id = {true, std::move(id)};
    EXPECT_WORKS(await(server()->companies.update(admin(), *company_, change)));
  }

  std::optional<core::Environment> box_;
  std::optional<core::AgentId> ada_;
};
BERTH_ON_BOTH_ENGINES(AgentPlaces);

TEST_P(AgentPlaces, RunThatAgentStartsStaysInTheEnvironmentOfItsCallerDownAChain) {
  server().open();
  core::RunId caller = run_in_box();
  for (int i = 0; i < 2; ++i) {
    const auto woken = wake(token_of(caller));
    ASSERT_TRUE(woken) << woken.error().message;
    ASSERT_TRUE(woken->environment_choice);
    EXPECT_EQ(woken->environment_id, box_->id);
    EXPECT_EQ(name_of(woken->environment_choice->reason), name_of(ChoiceReason::calling_run));
    EXPECT_EQ(woken->environment_choice->calling_run_id, caller);
    EXPECT_THAT(woken->environment_choice->explanation, HasSubstr("'boxes'"));
    EXPECT_EQ(events(woken->id).at(0).message, woken->environment_choice->explanation);
    end(caller);
    caller = woken->id;
    EXPECT_EQ(reaches(caller, RunState::running).environment->name, "boxes");
  }
  end(caller);
  const auto again = await(server()->runs.retry(admin(), caller));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->environment_id, box_->id) << "an operator starts it again where it was";
  end(again->id);
}

TEST_P(AgentPlaces, DefaultsDoNotMoveARunThatAgentStartsFromARun) {
  server().open();
  const core::RunId caller = run_in_box();
  set_company_default(local());
  const auto woken = wake(token_of(caller));
  ASSERT_TRUE(woken) << woken.error().message;
  EXPECT_EQ(woken->environment_id, box_->id);
  end(caller);
  end(woken->id);
}

TEST_P(AgentPlaces, AgentKeyUsesOnlyADefaultThatAnOperatorHasSet) {
  const auto refused = wake(key());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::forbidden);
  EXPECT_THAT(refused.error().remedy, HasSubstr("berth agent update"));
  EXPECT_EQ(number("select count(*) from heartbeat_runs"), 0);
  set_company_default(box_->id);
  const auto by_company = wake(key());
  ASSERT_TRUE(by_company) << by_company.error().message;
  EXPECT_EQ(by_company->environment_id, box_->id);
  set_company_default(std::nullopt);
  UpdateAgent agent;
  agent.default_environment_id = {true, local()};
  EXPECT_WORKS(await(server()->agents.update(admin(), *ada_, agent)));
  const auto by_agent = wake(key());
  ASSERT_TRUE(by_agent) << by_agent.error().message;
  EXPECT_EQ(by_agent->environment_id, local()) << "an operator has chosen it";
}

TEST_P(AgentPlaces, RunFromAnEnvironmentThatChangedMeanwhileIsRefused) {
  server().open();
  const core::RunId caller = run_in_box();
  const auto woken = wake(token_of(caller));
  ASSERT_TRUE(woken) << woken.error().message;
  // Bypasses the API, which asks the provider's plugin.
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_TRY(auto row, store::find_environment(s, core::Reach::everything(), box_->id));
    row.value.config["image"] = "two";
    return store::update_environment(s, row);
  }));
  EXPECT_FAILS(wake(token_of(caller)), Errc::forbidden);
  end(caller);
  const RunView view = ended(woken->id);
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.error_code, "forbidden");
  EXPECT_EQ(view.lease_id, std::nullopt) << "no place was taken";
}

TEST_P(AgentPlaces, RunFromAnEnvironmentThatWasArchivedOrDeletedIsRefused) {
  server().open();
  const core::RunId caller = run_in_box();
  UpdateEnvironment archive;
  archive.status = {true, core::EnvironmentStatus::archived};
  change(archive);
  EXPECT_FAILS(wake(token_of(caller)), Errc::environment_inactive);
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "update heartbeat_runs set environment_id = null where id = $1", caller);
  }));
  EXPECT_FAILS(wake(token_of(caller)), Errc::forbidden);
  end(caller);
}

class CompanyWalls : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().use_boxes();                        // whose driver accepts configs of every provider
    server()->services.allowed_by_default = {};  // as in `authenticated` mode
  }

  core::Call key(core::Role role) const {
    return {.who = {.kind = core::CallerKind::operator_key, .role = role, .company_id = company_}};
  }
  Result<core::Run> try_run() {
    hand_.turn(1ms);
    return await(server()->runs.start(key(core::Role::operator_), *company_, program({"true"})));
  }
  Result<core::Stored<EnvironmentView>> try_sandbox(bj::object config) {
    hand_.turn(1ms);
    return await(server()->environments.create(
        key(core::Role::operator_), *company_,
        linux_sandbox("box" + std::to_string(++made_), std::move(config))));
  }
  core::Stored<CompanyView> decide(Allowance which, std::optional<bool> verdict) {
    UpdateAllowances change;
    switch (which) {
      case Allowance::local: change.local = {true, verdict}; break;
      case Allowance::host_network: change.host_network = {true, verdict}; break;
      case Allowance::private_egress: change.private_egress = {true, verdict}; break;
      case Allowance::private_ssh: change.private_ssh = {true, verdict}; break;
      case Allowance::weak_sandbox: change.weak_sandbox = {true, verdict}; break;
    }
    auto done = await(server()->companies.allow(admin(), *company_, change));
    EXPECT_WORKS(done);
    return *std::move(done);
  }
  static bj::object egress(std::string rule) {
    return {{"egress", bj::object{{"allow", bj::array{std::move(rule)}}}}};
  }

  int made_ = 0;
};
BERTH_ON_BOTH_ENGINES(CompanyWalls);

TEST_P(CompanyWalls, LocalIsRefusedUntilAnInstanceAdministratorAllowsIt) {
  const auto refused = try_run();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::not_allowed_here);
  EXPECT_THAT(refused.error().message, HasSubstr("'Acme'"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("berth company allow 'Acme' local"));
  EXPECT_EQ(number("select count(*) from heartbeat_runs"), 0);
  EXPECT_EQ(decide(Allowance::local, true).value.allowed, std::vector{Allowance::local});
  server().open();
  const auto run = try_run();
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(ended(run->id).status, RunState::succeeded);
}

TEST_P(CompanyWalls, RunWhoseEnvironmentWasForbiddenWhileItWaitedFails) {
  decide(Allowance::local, true);
  const auto run = try_run();
  ASSERT_TRUE(run) << run.error().message;
  decide(Allowance::local, false);
  server().open();
  const RunView view = ended(run->id);
  EXPECT_EQ(view.error_code, "not_allowed_here");
  EXPECT_EQ(view.lease_id, std::nullopt);
}

TEST_P(CompanyWalls, LocalIsNeitherTestedNorADefaultWhereItIsForbidden) {
  const core::Call call = key(core::Role::admin);
  EXPECT_FAILS(await(server()->leases.test(call, local())), Errc::not_allowed_here);
  EXPECT_FAILS(await(server()->leases.probe_draft(call, *company_, {.driver = DriverKind::local})),
               Errc::not_allowed_here);
  UpdateCompany change;
  change.default_environment_id = {true, local()};
  EXPECT_FAILS(await(server()->companies.update(call, *company_, change)), Errc::not_allowed_here);
  CreateAgent agent;
  agent.name = "Ada";
  agent.adapter_type = core::AdapterType::process;
  agent.adapter_config = bj::object{{"command", "true"}};
  agent.default_environment_id = local();
  EXPECT_FAILS(await(server()->agents.create(call, *company_, agent)), Errc::not_allowed_here);
  EXPECT_FAILS(await(server()->environments.create(call, *company_,
                                                   {.name = "Another",
                                                    .description = std::nullopt,
                                                    .driver = DriverKind::local,
                                                    .status = std::nullopt,
                                                    .config = std::nullopt,
                                                    .env_vars = std::nullopt,
                                                    .metadata = std::nullopt})),
               Errc::not_allowed_here);
}

TEST_P(CompanyWalls, PlaceThatIsHeldTakesNoMoreCommandsOnceItIsForbidden) {
  decide(Allowance::local, true);
  server().open();
  const core::RunId run = start(program({"sleep", "600"}));
  const core::LeaseId lease = *reaches(run, RunState::running).lease_id;
  EXPECT_WORKS(await(server()->leases.exec(admin(), lease, {.argv = {"true"}})));
  decide(Allowance::local, false);
  EXPECT_FAILS(await(server()->leases.exec(admin(), lease, {.argv = {"true"}})),
               Errc::not_allowed_here);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), run)));
  EXPECT_EQ(ended(run).status, RunState::cancelled) << "what is forbidden is still taken down";
}

TEST_P(CompanyWalls, HostNetworkAndPrivateAddressesNeedTheirOwnAllowance) {
  const bj::object host{{"network", "host"}};
  EXPECT_FAILS(try_sandbox(host), Errc::not_allowed_here);
  for (const std::string rule : {"127.0.0.1/32:3310", "0.0.0.0", "10.0.0.0/8", "[::1]:80"}) {
    EXPECT_FAILS(try_sandbox(egress(rule)), Errc::not_allowed_here) << rule;
  }
  for (const std::string rule : {"example.org", "8.8.8.8/32:53", "0.0.0.0/0"}) {
    EXPECT_WORKS(try_sandbox(egress(rule)));
  }
  const auto plain = try_sandbox({});
  ASSERT_TRUE(plain) << plain.error().message;
  UpdateEnvironment change;
  change.config = {true, host};
  const core::Call call = key(core::Role::admin);
  EXPECT_FAILS(await(server()->environments.update(call, plain->value.id, change)),
               Errc::not_allowed_here);
  decide(Allowance::local, true);
  EXPECT_FAILS(try_sandbox(host), Errc::not_allowed_here) << "each is its own";
  decide(Allowance::host_network, true);
  EXPECT_WORKS(try_sandbox(host));
  EXPECT_FAILS(try_sandbox(egress("127.0.0.1")), Errc::not_allowed_here);
  decide(Allowance::private_egress, true);
  EXPECT_WORKS(try_sandbox(egress("127.0.0.1")));
}

TEST_P(CompanyWalls, WeakSandboxesNeedTheirOwnAllowance) {
  const bj::object nested{{"allow", bj::array{"nested_user_namespaces"}}};
  const bj::object minimal{{"minIsolation", "minimal"}};
  EXPECT_FAILS(try_sandbox(nested), Errc::not_allowed_here);
  EXPECT_FAILS(try_sandbox(minimal), Errc::not_allowed_here);
  EXPECT_WORKS(try_sandbox({{"allow", bj::array{"ptrace"}}}));
  EXPECT_WORKS(try_sandbox({{"minIsolation", "weak"}}));
  decide(Allowance::host_network, true);
  EXPECT_FAILS(try_sandbox(nested), Errc::not_allowed_here);
  decide(Allowance::weak_sandbox, true);
  EXPECT_WORKS(try_sandbox(nested));
  EXPECT_WORKS(try_sandbox(minimal));
}

TEST_P(CompanyWalls, SshHostsAtPrivateAddressesNeedTheirOwnAllowance) {
  const auto try_ssh = [&](const std::string& host) {
    hand_.turn(1ms);
    return await(server()->environments.create(
        key(core::Role::operator_), *company_,
        {.name = "host" + std::to_string(++made_),
         .description = std::nullopt,
         .driver = DriverKind::ssh,
         .status = std::nullopt,
         .config = bj::object{{"host", host}, {"username", "me"}, {"remoteWorkspacePath", "/w"}},
         .env_vars = std::nullopt,
         .metadata = std::nullopt}));
  };
  for (const std::string host : {"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "0.0.0.0",
                                 "::ffff:192.168.0.1", "fd00::1"}) {
    EXPECT_FAILS(try_ssh(host), Errc::not_allowed_here) << host;
  }
  EXPECT_WORKS(try_ssh("8.8.8.8"));
  EXPECT_WORKS(try_ssh("build-7.example"));
  decide(Allowance::private_egress, true);
  EXPECT_FAILS(try_ssh("127.0.0.1"), Errc::not_allowed_here) << "each is its own";
  decide(Allowance::private_ssh, true);
  EXPECT_WORKS(try_ssh("127.0.0.1"));
}

TEST_P(CompanyWalls, EnvironmentFromBeforeIsRefusedAgainOnceItIsForbidden) {
  decide(Allowance::host_network, true);
  const auto box = try_sandbox({{"network", "host"}});
  ASSERT_TRUE(box) << box.error().message;
  decide(Allowance::host_network, false);
  StartRun wanted = program({"true"});
  wanted.environment_id = box->value.id;
  const core::Call call = key(core::Role::operator_);
  EXPECT_FAILS(await(server()->runs.start(call, *company_, wanted)), Errc::not_allowed_here);
  EXPECT_FAILS(await(server()->leases.test(call, box->value.id)), Errc::not_allowed_here);
  EXPECT_FAILS(await(server()->setup_sessions.start(call, box->value.id, {})),
               Errc::not_allowed_here);
  UpdateEnvironment rename;
  rename.name = {true, "Renamed"};
  EXPECT_WORKS(await(server()->environments.update(call, box->value.id, rename)));
}

TEST_P(CompanyWalls, OnlyAnInstanceAdministratorDecides) {
  UpdateAllowances change;
  change.local = {true, true};
  for (const core::Role role : all<core::Role>()) {
    EXPECT_FAILS(await(server()->companies.allow(key(role), *company_, change)), Errc::forbidden);
  }
  EXPECT_FAILS(try_run(), Errc::not_allowed_here);
}

TEST_P(CompanyWalls, DecisionEndsWhatWasKeptAndNullGivesItBackToTheMode) {
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_TRY(auto row, store::find_company(s, core::Reach::everything(), *company_));
    row.value.allowances.local = true;
    row.value.kept_allowances = {Allowance::host_network, Allowance::local};
    return store::update_company(s, row);
  }));
  const auto decided = decide(Allowance::local, true);
  EXPECT_EQ(decided.value.kept_allowances, std::vector{Allowance::host_network});
  EXPECT_EQ(decide(Allowance::local, std::nullopt).value.allowed, std::vector<Allowance>{});
  server()->services.allowed_by_default = core::Allowances::all();
  const auto seen = await(server()->companies.get(admin(), *company_));
  EXPECT_THAT(seen->value.allowed, testing::ElementsAreArray(all<Allowance>()));
}

TEST_P(CompanyWalls, NewCompanyDefaultsToItsSandboxWhereThereIsOne) {
  const auto without = await(server()->companies.get(admin(), *company_));
  EXPECT_EQ(without->value.default_environment_id, std::nullopt);
  server()->catalog.linux_works();
  const auto made = await(server()->companies.create(admin(), {"Walled", std::nullopt}));
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(made->value.default_environment_id);
  const auto place =
      await(server()->environments.get(admin(), *made->value.default_environment_id));
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(place->value.name, "Sandbox");
  const auto stored = await(server()->companies.get(admin(), made->value.id));
  EXPECT_EQ(stored->value.default_environment_id, made->value.default_environment_id);
  EXPECT_EQ(stored->version, made->version);
}

}  // namespace
}  // namespace berth::engine
