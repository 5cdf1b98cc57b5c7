#include "contract/store_fixture.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"
#include "store/sql/migrations.hpp"

#include <gmock/gmock.h>

// What an upgrade does to the rows of an older program.
namespace berth::store {
namespace {

using core::Allowance;

class AllowancesUpgrade : public StoreContract {
 protected:
  core::Environment put(core::Environment made) {
    EXPECT_WORKS(write([&](Session& s) { return insert_environment(s, made); }));
    return made;
  }
  core::Environment put_local(const core::Company& company) {
    return put(local_environment(company.id));
  }
  void put_sandbox(const core::Company& company, bj::object config) {
    core::Environment box = environment(company.id, "box");
    box.driver = core::DriverKind::sandbox;
    box.config = {{"provider", "linux"}, {"image", "host"}};
    for (const auto& [key, value] : config) box.config[key] = value;
    put(std::move(box));
  }
  void put_ssh(const core::Company& company) {
    core::Environment host = environment(company.id, "remote");
    host.driver = core::DriverKind::ssh;
    host.config = {{"host", "builder"}, {"username", "me"}, {"remoteWorkspacePath", "/w"}};
    put(std::move(host));
  }
  static bj::object egress(bj::array allow) {
    return {{"egress", bj::object{{"allow", std::move(allow)}}}};
  }

  // Reverts the migrations from 12 on.
  static Result<> take_back_sandbox_shares_and_later(Session& session) {
    for (const char* step :
         {"drop index heartbeat_runs_by_name", "alter table heartbeat_runs drop column name",
          "alter table heartbeat_runs drop column responsible_user_id",
          "alter table tokens drop column created_by",
          "drop index sandboxes_company_id_provider_provider_lease_id", "drop table agent_homes",
          "alter table sandboxes drop column memory_mb",
          "alter table sandboxes drop column disk_mb", "alter table sandboxes drop column pids",
          "alter table sandboxes drop column counted"}) {
      BERTH_DO(session.run(step, {}));
    }
    return {};
  }
  // The database as version 7 left it, opened by the current program.
  void upgrade() {
    EXPECT_WORKS(write([](Session& s) -> Result<> {
      BERTH_DO(take_back_sandbox_shares_and_later(s));
      for (const char* step :
           {"drop index heartbeat_runs_stored", "drop index heartbeat_runs_finished",
            "drop index heartbeat_runs_logs", "drop index heartbeat_runs_retries",
            "alter table heartbeat_runs drop column payload_bytes",
            "alter table heartbeat_runs drop column log_removed_at",
            "alter table plugins drop column egress", "alter table companies drop column quota",
            "alter table companies drop column allowances",
            "alter table companies drop column kept_allowances",
            "delete from schema_migrations where number >= 8"}) {
        BERTH_DO(s.run(step, {}));
      }
      return {};
    }));
    open_again();
  }
  void open_again() {
    database_.reset();
    auto again = open_database({.url = place_->url()});
    ASSERT_TRUE(again) << again.error().message;
    database_ = *std::move(again);
    EXPECT_EQ(number("select count(*) from schema_migrations"),
              static_cast<std::int64_t>(migrations().size()));
  }
  void expect_kept(const core::Company& company, const std::vector<Allowance>& wanted) {
    const auto row =
        read([&](Session& s) { return find_company(s, core::Reach::everything(), company.id); });
    ASSERT_TRUE(row) << row.error().message;
    EXPECT_EQ(row->value.kept_allowances, wanted) << company.name;
    EXPECT_THAT(core::Allowances{}.with(row->value.allowances).names(),
                testing::UnorderedElementsAreArray(wanted))
        << company.name;
  }
};
BERTH_ON_BOTH_ENGINES(AllowancesUpgrade);

TEST_P(AllowancesUpgrade, CompanyKeepsLocalIfItUsedIt) {
  const core::Company never = given_company("never");
  put_local(never);
  const core::Company by_run = given_company("by run");
  core::Run run = StoreContract::run(by_run.id);
  run.environment_id = put_local(by_run).id;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, run); }));
  const core::Company by_agent = given_company("by agent");
  core::Agent ada = agent(by_agent.id);
  ada.default_environment_id = put_local(by_agent).id;
  EXPECT_WORKS(write([&](Session& s) { return insert_agent(s, ada); }));
  Stored<core::Company> by_default{given_company("by default"), 1};
  by_default.value.default_environment_id = put_local(by_default.value).id;
  EXPECT_WORKS(write([&](Session& s) { return update_company(s, by_default); }));
  upgrade();
  expect_kept(never, {});
  for (const core::Company& company : {by_run, by_agent, by_default.value}) {
    expect_kept(company, {Allowance::local});
  }
}

TEST_P(AllowancesUpgrade, CompanyKeepsNetworkAndPrivateAddressesOfItsEnvironments) {
  const core::Company host = given_company("host");
  put_sandbox(host, {{"network", "host"}});
  const core::Company open = given_company("open");
  put_sandbox(open, egress({"example.org", "10.1.2.3:5432"}));
  const core::Company walled = given_company("walled");
  put_sandbox(walled, egress({"example.org", "8.8.8.8/32:53", "*.fd.example"}));
  const core::Company six = given_company("six");
  put_sandbox(six, egress({"[fd00::1]:80"}));
  const core::Company both = given_company("both");
  put_sandbox(both, {{"network", "host"}});
  core::Run run = StoreContract::run(both.id);
  run.environment_id = put_local(both).id;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, run); }));
  upgrade();
  expect_kept(host, {Allowance::host_network});
  expect_kept(open, {Allowance::private_egress});
  expect_kept(walled, {});
  expect_kept(six, {Allowance::private_egress});
  expect_kept(both, {Allowance::host_network, Allowance::local});
}

TEST_P(AllowancesUpgrade, CompanyKeepsSshHostsAndWeakSandboxesOfItsEnvironments) {
  const core::Company remote = given_company("remote");
  put_ssh(remote);
  const core::Company nested = given_company("nested");
  put_sandbox(nested, {{"allow", bj::array{"ptrace", "nested_user_namespaces"}}});
  const core::Company minimal = given_company("minimal");
  put_sandbox(minimal, {{"minIsolation", "minimal"}});
  const core::Company strict = given_company("strict");
  put_sandbox(strict, {{"minIsolation", "standard"}, {"allow", bj::array{"ptrace"}}});
  upgrade();
  expect_kept(remote, {Allowance::private_ssh});
  expect_kept(nested, {Allowance::weak_sandbox});
  expect_kept(minimal, {Allowance::weak_sandbox});
  expect_kept(strict, {});
}

TEST_P(AllowancesUpgrade, CompanyOfTheLastVersionKeepsItsDecisions) {
  Stored<core::Company> decided{given_company("decided"), 1};
  decided.value.allowances = {.local = false, .host_network = true};
  decided.value.kept_allowances = {Allowance::local};
  EXPECT_WORKS(write([&](Session& s) { return update_company(s, decided); }));
  put_ssh(decided.value);
  put_sandbox(decided.value, {{"minIsolation", "minimal"}});
  EXPECT_WORKS(write([](Session& s) -> Result<> {
    BERTH_DO(
        s.run("update companies set allowances = "
              "'{\"local\":false,\"hostNetwork\":true,\"privateEgress\":null}'",
              {}));
    BERTH_DO(take_back_sandbox_shares_and_later(s));
    BERTH_DO(s.run("delete from schema_migrations where number >= 11", {}));
    return {};
  }));
  open_again();
  const auto row = read(
      [&](Session& s) { return find_company(s, core::Reach::everything(), decided.value.id); });
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(row->value.kept_allowances,
            (std::vector{Allowance::local, Allowance::private_ssh, Allowance::weak_sandbox}));
  EXPECT_EQ(row->value.allowances, (core::AllowanceDecisions{.local = false,
                                                             .host_network = true,
                                                             .private_egress = std::nullopt,
                                                             .private_ssh = true,
                                                             .weak_sandbox = true}));
}

TEST_P(AllowancesUpgrade, CompanyThatUsedEverythingKeepsEverything) {
  const core::Company all_of_it = given_company("all");
  put_sandbox(all_of_it, egress({"127.0.0.1"}));
  core::Environment host = environment(all_of_it.id, "host");
  host.driver = core::DriverKind::sandbox;
  host.config = {{"provider", "linux"}, {"network", "host"}};
  put(host);
  put_ssh(all_of_it);
  core::Environment weak = environment(all_of_it.id, "weak");
  weak.driver = core::DriverKind::sandbox;
  weak.config = {{"provider", "linux"}, {"minIsolation", "minimal"}};
  put(weak);
  core::Run run = StoreContract::run(all_of_it.id);
  run.environment_id = put_local(all_of_it).id;
  EXPECT_WORKS(write([&](Session& s) { return insert_run(s, run); }));
  upgrade();
  expect_kept(all_of_it, {Allowance::host_network, Allowance::local, Allowance::private_egress,
                          Allowance::private_ssh, Allowance::weak_sandbox});
}

TEST_P(AllowancesUpgrade, OfTwoRowsOfOneSandboxTheNewestRemains) {
  const core::Company company = given_company("shared");
  const core::Environment place = put_local(company);
  EXPECT_WORKS(write([](Session& s) -> Result<> {
    BERTH_DO(s.run("drop index sandboxes_company_id_provider_provider_lease_id", {}));
    BERTH_DO(s.run("create index sandboxes_company_id_provider_provider_lease_id on sandboxes (id)",
                   {}));
    return {};
  }));
  std::vector<core::SandboxId> ids;
  for (const std::int64_t ms : {1000, 2000}) {
    core::Sandbox row{.id = fresh<core::SandboxId>(),
                      .company_id = company.id,
                      .environment_id = place.id,
                      .provider = "boxes",
                      .provider_lease_id = "box-1",
                      .status = core::SandboxState::idle,
                      .created_at = Time{ms}};
    ids.push_back(row.id);
    EXPECT_WORKS(write([&](Session& s) { return insert_sandbox(s, row); }));
  }
  upgrade();
  const auto state = [&](const core::SandboxId& id) {
    const auto row =
        read([&](Session& s) { return find_sandbox(s, core::Reach::everything(), id); });
    return row->value.status;
  };
  EXPECT_EQ(state(ids[0]), core::SandboxState::lost);
  EXPECT_EQ(state(ids[1]), core::SandboxState::idle);
}

}  // namespace
}  // namespace berth::store
