#include "contract/work_fixture.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"

namespace berth::engine {
namespace {

using core::DriverKind;
using core::LeaseEvent;
using core::LeasePolicy;
using core::LeaseState;
using core::RunState;
using core::SandboxState;

bj::value at(const core::Lease& lease, std::string_view key) {
  const bj::value* found = lease.metadata ? lease.metadata->if_contains(key) : nullptr;
  return found != nullptr ? *found : bj::value("absent");
}

auto environment_with(const core::EnvironmentId& id, bj::object config) {
  return [id, config = std::move(config)](store::Session& s) -> Result<> {
    BERTH_TRY(auto now, store::find_environment(s, core::Reach::everything(), id));
    now.value.config = config;
    return store::update_environment(s, now);
  };
}

class LeaseRows : public WorkContract {
 protected:
  core::Environment local_row() {
    return read([&](store::Session& s) {
             return store::find_environment(s, core::Reach::everything(), local());
           })
        ->value;
  }
  core::Environment fake(bj::object config = {}) {
    config["provider"] = "fake";
    config.emplace("image", "ubuntu:24.04");
    config.emplace("reuseLease", false);
    return put_environment(DriverKind::sandbox, "fake", std::move(config));
  }
  void expect_fields(const core::LeaseRecord& lease, const core::Environment& environment,
                     const core::Run& run) {
    EXPECT_EQ(lease.company_id, *company_);
    EXPECT_EQ(lease.environment_id, environment.id);
    EXPECT_EQ(lease.issue_id, std::nullopt);
    EXPECT_EQ(lease.heartbeat_run_id, run.id);
    EXPECT_EQ(lease.execution_workspace_id, std::nullopt);
    EXPECT_EQ(lease.status, LeaseState::active);
    EXPECT_EQ(at(lease, "driver"), bj::value(name_of(environment.driver)));
    EXPECT_EQ(at(lease, "executionWorkspaceMode"), bj::value(nullptr));
  }
  // The first call releases it, the second changes nothing.
  void expect_released_once(const LeaseLifecycle::Row& active) {
    const LeaseLifecycle::Row settled = release(active);
    EXPECT_EQ(settled.value.status, LeaseState::released);
    EXPECT_EQ(settled.value.cleanup_status, core::CleanupStatus::success);
    EXPECT_EQ(settled.value.released_at, hand_.now());
    EXPECT_EQ(held(), 0);
    hand_.turn(1h);
    const auto again = await(server()->leases.release(admin(), settled.value.id));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->status, LeaseState::released);
    EXPECT_EQ(again->updated_at, settled.value.updated_at);
    EXPECT_EQ(number("select count(*) from activity where action = 'environment.lease_released'"),
              1);
  }
};
BERTH_ON_BOTH_ENGINES(LeaseRows);

TEST_P(LeaseRows, ALocalLeaseNamesItsRunAndHasNoProviderId) {
  const core::Environment environment = local_row();
  const core::Run run = put_run(environment, RunState::starting);
  const LeaseLifecycle::Row row = acquire(environment, run);
  expect_fields(row.value, environment, run);
  EXPECT_EQ(row.value.provider, "local");
  EXPECT_EQ(row.value.provider_lease_id, std::nullopt);
  EXPECT_EQ(row.value.lease_policy, LeasePolicy::ephemeral);
  EXPECT_EQ(row.value.sandbox_id, std::nullopt);
  expect_released_once(row);
}

TEST_P(LeaseRows, AFakeLeaseHasTheProvidersIdAndWhatTheProviderTold) {
  const core::Environment environment = fake();
  const core::Run run = put_run(environment, RunState::starting);
  const LeaseLifecycle::Row row = acquire(environment, run);
  expect_fields(row.value, environment, run);
  EXPECT_EQ(row.value.provider, "fake");
  EXPECT_TRUE(row.value.provider_lease_id->starts_with("sandbox://fake/" + run.id.str() + "/"));
  EXPECT_EQ(at(row.value, "provider"), bj::value("fake"));
  EXPECT_EQ(at(row.value, "image"), bj::value("ubuntu:24.04"));
  EXPECT_EQ(at(row.value, "reuseLease"), bj::value(false));
  const core::Sandbox made = sandbox(*row.value.sandbox_id);
  EXPECT_EQ(made.status, SandboxState::leased);
  EXPECT_EQ(made.lease_id, row.value.id);
  EXPECT_EQ(made.provider_lease_id, row.value.provider_lease_id);
  expect_released_once(row);
  EXPECT_EQ(sandbox(made.id).status, SandboxState::destroyed);
}

TEST_P(LeaseRows, AReusableFakeLeaseHasTheIdOfItsEnvironment) {
  const core::Environment environment = fake({{"reuseLease", true}});
  const LeaseLifecycle::Row row = acquire(environment, put_run(environment, RunState::starting));
  EXPECT_EQ(row.value.provider_lease_id, "sandbox://fake/" + environment.id.str());
  EXPECT_EQ(row.value.lease_policy, LeasePolicy::reuse_by_environment);
  EXPECT_EQ(release(row).value.status, LeaseState::released);
  EXPECT_EQ(sandbox(*row.value.sandbox_id).status, SandboxState::idle);
  const LeaseLifecycle::Row next = acquire(environment, put_run(environment, RunState::starting));
  EXPECT_EQ(next.value.sandbox_id, row.value.sandbox_id);
  EXPECT_EQ(at(next.value, "resumedLease"), bj::value(true));
  release(next, LeaseEvent::release_expired);
}

TEST_P(LeaseRows, ALeaseIsReleasedAfterItsEnvironmentIsGone) {
  const core::Environment environment = fake();
  const LeaseLifecycle::Row row = acquire(environment, put_run(environment, RunState::starting));
  EXPECT_WORKS(await(server()->environments.remove(admin(), environment.id)));
  const core::LeaseRecord orphan = lease(row.value.id);
  EXPECT_EQ(orphan.environment_id, std::nullopt);
  const auto current = read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), orphan.id);
  });
  EXPECT_EQ(release(*current).value.status, LeaseState::released);
  EXPECT_EQ(sandbox(*row.value.sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(held(), 0);
}

TEST_P(LeaseRows, ALeaseIsReleasedWithTheConfigThatItWasMadeWith) {
  Boxes& boxes = server().use_boxes();
  const core::Environment environment = put_boxes({{"zone", "old"}});
  const LeaseLifecycle::Row row = acquire(environment, put_run(environment, RunState::starting));
  EXPECT_WORKS(write(environment_with(environment.id, {{"provider", "another"}, {"zone", "new"}})));
  EXPECT_EQ(release(row).value.status, LeaseState::released);
  EXPECT_EQ(boxes.configs.back().at("zone"), bj::value("old"));
  EXPECT_EQ(boxes.there, std::set<std::string>{});
}

TEST_P(LeaseRows, ALeaseIsReleasedWithTheKeyThatItWasMadeWithWhateverBecameOfItsEnvironment) {
  Boxes& hosts = server().use_boxes_for(DriverKind::ssh);
  const auto made = await(server()->environments.create(admin(), *company_, ssh("host")));
  ASSERT_TRUE(made) << made.error().message;
  const auto key_of = [&](const LeaseLifecycle::Row& row) {
    hosts.secrets.clear();
    EXPECT_EQ(release(row).value.status, LeaseState::released);
    return hosts.secrets["privateKeySecretRef"];
  };
  const auto secrets = [&] { return number("select count(*) from company_secrets"); };

  const LeaseLifecycle::Row first = acquire(made->value, put_run(made->value, RunState::starting));
  UpdateEnvironment change;
  change.config = {true, bj::object{{"privateKey", "another key"}, {"host", "10.0.0.2"}}};
  const auto changed = await(server()->environments.update(admin(), made->value.id, change));
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(secrets(), 2) << "the old key is kept for the lease";
  const auto second = acquire(changed->value, put_run(made->value, RunState::starting));
  EXPECT_EQ(key_of(first), "the key");
  EXPECT_EQ(secrets(), 1) << "nobody needs the old key any more";

  EXPECT_WORKS(await(server()->environments.remove(admin(), made->value.id)));
  const auto orphan = read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), second.value.id);
  });
  EXPECT_EQ(key_of(*orphan), "another key");
  EXPECT_EQ(secrets(), 0);
}

class Cleanup : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    boxes_ = &server().use_boxes();
  }

  // A lease whose box cannot be destroyed; its run is over.
  LeaseLifecycle::Row stuck(const core::Environment& environment) {
    const LeaseLifecycle::Row row = acquire(environment, put_run(environment, RunState::succeeded));
    boxes_->refused.insert(*row.value.provider_lease_id);
    return release(row);
  }
  core::LeaseId parked(const core::Environment& environment) {
    const core::LeaseId id = stuck(environment).value.id;
    for (int attempt = 1; attempt < teardown_attempts_max; ++attempt) {
      hand_.turn(10min);
      sweep();
    }
    EXPECT_TRUE(lease(id).parked_at);
    return id;
  }

  Boxes* boxes_ = nullptr;
};
BERTH_ON_BOTH_ENGINES(Cleanup);

TEST_P(Cleanup, AFailedTeardownIsRepeatedAfterLongerAndLongerPauses) {
  const LeaseLifecycle::Row row = stuck(put_boxes());
  const core::LeaseId id = row.value.id;
  EXPECT_EQ(row.value.status, LeaseState::pending_cleanup);
  EXPECT_EQ(row.value.cleanup_status, core::CleanupStatus::failed);
  EXPECT_TRUE(row.value.failure_reason->contains("the box is stuck"));
  EXPECT_EQ(row.value.attempts, 1);

  std::int64_t pause = 1000;
  for (std::int64_t attempt = 2; attempt <= teardown_attempts_max; ++attempt) {
    EXPECT_EQ(lease(id).next_attempt_at, Time{hand_.now().ms + pause}) << "before " << attempt;
    hand_.turn(std::chrono::milliseconds{pause - 1});
    sweep();
    EXPECT_EQ(lease(id).attempts, attempt - 1) << "too early";
    hand_.turn(1ms);
    sweep();
    EXPECT_EQ(lease(id).attempts, attempt);
    pause *= 2;
  }
  EXPECT_EQ(lease(id).parked_at, hand_.now());
  hand_.turn(24h);
  sweep();
  EXPECT_EQ(lease(id).attempts, teardown_attempts_max) << "a parked lease waits for an operator";
  EXPECT_EQ(boxes_->there.size(), 1U);
  boxes_->refused.clear();
  EXPECT_WORKS(await(server()->leases.release(admin(), id)));
}

TEST_P(Cleanup, TheNextAttemptThatSucceedsEndsTheLeaseAndItsSandbox) {
  const LeaseLifecycle::Row row = stuck(put_boxes());
  boxes_->refused.clear();
  hand_.turn(1s);
  sweep();
  const core::LeaseRecord over = lease(row.value.id);
  EXPECT_EQ(over.status, LeaseState::expired);
  EXPECT_EQ(over.cleanup_status, core::CleanupStatus::success);
  EXPECT_EQ(sandbox(*row.value.sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
}

TEST_P(Cleanup, ReleaseAndDestroyTryAParkedLeaseAgain) {
  const core::Environment environment = put_boxes();
  for (const bool destroys : {false, true}) {
    const core::LeaseId id = parked(environment);
    const auto end = [&] {
      return await(destroys ? server()->leases.destroy(admin(), id)
                            : server()->leases.release(admin(), id));
    };
    const auto refused = end();
    ASSERT_TRUE(refused) << refused.error().message;
    EXPECT_EQ(refused->status, LeaseState::pending_cleanup);
    EXPECT_EQ(refused->attempts, 1) << "its attempts begin anew";
    EXPECT_EQ(refused->parked_at, std::nullopt);
    boxes_->refused.clear();
    const auto done = end();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->status, LeaseState::expired);
    EXPECT_EQ(done->next_step, "Nothing: the lease is over.");
  }
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
}

TEST_P(Cleanup, ForceResolveEndsTheRowsWhateverTheProviderStillHolds) {
  const core::Environment environment = put_boxes();
  const core::LeaseId id = parked(environment);
  const auto done = await(server()->leases.force_resolve(admin(), id, {"it burned down"}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->status, LeaseState::expired);
  EXPECT_EQ(done->failure_reason, "it burned down");
  EXPECT_EQ(sandbox(*lease(id).sandbox_id).status, SandboxState::lost);
  const std::size_t verbs = boxes_->verbs.size();
  hand_.turn(24h);
  sweep();
  EXPECT_EQ(boxes_->verbs.size(), verbs);
  EXPECT_WORKS(await(server()->environments.remove(admin(), environment.id)));
  EXPECT_WORKS(await(server()->lease_lifecycle.remove_held({.key = id})));
}

TEST_P(Cleanup, ALeaseThatARunWorksWithIsNotTakenFromIt) {
  const core::Environment environment = put_boxes();
  const LeaseLifecycle::Row row = acquire(environment, put_run(environment, RunState::starting));
  EXPECT_FAILS(await(server()->leases.release(admin(), row.value.id)), Errc::conflict);
  EXPECT_FAILS(await(server()->leases.destroy(admin(), row.value.id)), Errc::conflict);
  EXPECT_FAILS(await(server()->leases.force_resolve(admin(), row.value.id, {"now"})),
               Errc::conflict);
  EXPECT_EQ(lease(row.value.id).status, LeaseState::active);
  release(row);
}

TEST_P(Cleanup, LeasesThatCannotEndDoNotHoldUpThoseThatCan) {
  const core::Environment environment = put_boxes();
  constexpr int many = 45;  // more than one pass handles
  for (int i = 0; i < many; ++i) stuck(environment);
  hand_.turn(1min);
  const LeaseLifecycle::Row last = stuck(environment);
  boxes_->refused.erase(*last.value.provider_lease_id);
  hand_.turn(1s);
  int looks = 0;
  while (!core::is_final(lease(last.value.id).status) && looks < 4) {
    sweep();
    ++looks;
  }
  EXPECT_EQ(lease(last.value.id).status, LeaseState::expired);
  EXPECT_LE(looks, 3);
  boxes_->refused.clear();
  for (int i = 0; i < 4; ++i) {
    hand_.turn(10min);
    sweep();
  }
  EXPECT_EQ(held(), 0);
}

TEST_P(Cleanup, AnAcquireThatFailsEndsTheRunAndLeavesNothing) {
  server().open();
  StartRun wanted = program({"true"});
  wanted.environment_id = put_boxes().id;
  boxes_->refuses_to_acquire = true;
  const RunView view = ran(std::move(wanted));
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.error_code, "provider_unavailable");
  EXPECT_EQ(view.error,
            "Failed to acquire lease for environment \"boxes\" (sandbox): there are no boxes");
  EXPECT_EQ(view.environment_lease->status, LeaseState::failed);
  EXPECT_EQ(sandbox(*lease(*view.lease_id).sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(held(), 0);
}

class Kept : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().open();
  }
  std::size_t folders() { return await(server().local().held())->size(); }
};
BERTH_ON_BOTH_ENGINES(Kept);

TEST_P(Kept, AFailedRunsLeaseIsKeptForADayWhereThePolicySaysSo) {
  set_metadata(local(), {{"leasePolicy", "retain_on_failure"}});
  const RunView failed = ran(program({"false"}));
  EXPECT_EQ(failed.environment_lease->status, LeaseState::retained);
  EXPECT_EQ(failed.environment_lease->failure_reason, "adapter_or_run_failure");
  EXPECT_EQ(folders(), 1U);
  EXPECT_EQ(ran(program({"true"})).environment_lease->status, LeaseState::released);
  hand_.turn(23h);
  sweep();
  EXPECT_EQ(lease(*failed.lease_id).status, LeaseState::retained);
  hand_.turn(2h);
  sweep();
  EXPECT_EQ(lease(*failed.lease_id).status, LeaseState::expired);
  EXPECT_EQ(folders(), 0U);
}

TEST_P(Kept, AnOperatorGivesAKeptLeaseBack) {
  set_metadata(local(), {{"leasePolicy", "retain_on_failure"}});
  const RunView failed = ran(program({"false"}));
  const auto given = await(server()->leases.release(admin(), *failed.lease_id));
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(given->status, LeaseState::released);
  EXPECT_EQ(folders(), 0U);
}

TEST_P(Kept, HowTheRunEndedIsHowItsLeaseEnds) {
  EXPECT_EQ(ran(program({"true"})).environment_lease->status, LeaseState::released);
  EXPECT_EQ(ran(program({"false"})).environment_lease->status, LeaseState::failed);
  const core::RunId cancelled = start(program({"sleep", "60"}));
  reaches(cancelled, RunState::running);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), cancelled)));
  EXPECT_EQ(ended(cancelled).environment_lease->status, LeaseState::expired);
  EXPECT_EQ(folders(), 0U);
}

TEST_P(Kept, ARunWhoseLeaseExpiresIsCancelled) {
  Boxes& boxes = server().use_boxes();
  boxes.expires_at = Time{hand_.now().ms + 3'600'000};
  StartRun wanted = program({"sleep", "60"});
  wanted.environment_id = put_boxes().id;
  const core::RunId id = start(std::move(wanted));
  reaches(id, RunState::running);
  hand_.turn(59min);
  sweep();
  EXPECT_EQ(look(id).cancel_requested_at, std::nullopt);
  hand_.turn(2min);
  sweep();
  const RunView view = ended(id);
  EXPECT_EQ(view.status, RunState::cancelled);
  EXPECT_EQ(view.environment_lease->status, LeaseState::expired);
  EXPECT_EQ(boxes.there, std::set<std::string>{});
}

class Reuse : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    boxes_ = &server().use_boxes();
    environment_ = put_boxes({{"reuseLease", true}});
    server().open();
  }
  core::RunId start_in_box(std::vector<std::string> argv) {
    StartRun wanted = program(std::move(argv));
    wanted.environment_id = environment_->id;
    return start(std::move(wanted));
  }
  RunView ran_in_box(std::vector<std::string> argv) { return ended(start_in_box(std::move(argv))); }
  std::string box_of(const RunView& view) { return *view.environment_lease->provider_lease_id; }
  SandboxState state_of(const RunView& view) {
    return sandbox(*lease(*view.lease_id).sandbox_id).status;
  }

  Boxes* boxes_ = nullptr;
  std::optional<core::Environment> environment_;
};
BERTH_ON_BOTH_ENGINES(Reuse);

TEST_P(Reuse, TheNextRunWorksInTheSandboxThatTheLastOneLeft) {
  const RunView first = ran_in_box({"true"});
  EXPECT_EQ(first.environment_lease->status, LeaseState::released);
  EXPECT_EQ(state_of(first), SandboxState::idle);
  const RunView second = ran_in_box({"true"});
  EXPECT_EQ(box_of(second), box_of(first));
  EXPECT_NE(second.lease_id, first.lease_id);
  EXPECT_EQ(boxes_->verbs, (std::vector<std::string>{"acquire box-1", "release box-1",
                                                     "resume box-1", "release box-1"}));
}

TEST_P(Reuse, TwoRunsAtOnceHaveASandboxEach) {
  ran_in_box({"true"});
  const core::RunId first = start_in_box({"sleep", "60"});
  const core::RunId second = start_in_box({"sleep", "60"});
  const std::string one = box_of(reaches(first, RunState::running));
  const std::string other = box_of(reaches(second, RunState::running));
  EXPECT_EQ((std::set{one, other}), (std::set<std::string>{"box-1", "box-2"}));
  for (const core::RunId& id : {first, second}) {
    EXPECT_WORKS(await(server()->runs.cancel(admin(), id)));
    ended(id);
  }
}

TEST_P(Reuse, AChangedConfigGetsAFreshSandbox) {
  const RunView first = ran_in_box({"true"});
  bj::object config = environment_->config;
  config["image"] = "another";
  EXPECT_WORKS(write(environment_with(environment_->id, std::move(config))));
  EXPECT_NE(box_of(ran_in_box({"true"})), box_of(first));
}

TEST_P(Reuse, ASandboxServesOneAgentOnly) {
  CreateAgent wanted;
  wanted.name = "Ada";
  wanted.adapter_type = core::AdapterType::process;
  wanted.adapter_config = bj::object{{"command", "true"}};
  const auto ada = await(server()->agents.create(admin(), *company_, wanted));
  ASSERT_TRUE(ada) << ada.error().message;
  const RunView first = ran_in_box({"true"});
  StartRun hers = program({"true"});
  hers.environment_id = environment_->id;
  hers.agent_id = ada->value.id;
  const RunView second = ran(hers);
  EXPECT_NE(box_of(second), box_of(first));
  EXPECT_EQ(box_of(ran(hers)), box_of(second));
}

TEST_P(Reuse, ASandboxThatItsRunDidNotLeaveInOrderIsDestroyed) {
  const RunView failed = ran_in_box({"false"});
  EXPECT_EQ(state_of(failed), SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
  const core::RunId id = start_in_box({"sleep", "60"});
  reaches(id, RunState::running);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), id)));
  EXPECT_EQ(state_of(ended(id)), SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
}

TEST_P(Reuse, DestroyingALeaseThatWasGivenBackDestroysTheSandboxThatWaits) {
  const RunView first = ran_in_box({"true"});
  ASSERT_EQ(state_of(first), SandboxState::idle);
  EXPECT_WORKS(await(server()->leases.destroy(admin(), *first.lease_id)));
  EXPECT_EQ(state_of(first), SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
  EXPECT_WORKS(await(server()->leases.destroy(admin(), *first.lease_id)));
}

TEST_P(Reuse, ASandboxThatWaitsIsListedAndToldAndRemovedByItsId) {
  const RunView first = ran_in_box({"true"});
  const core::SandboxId id = *lease(*first.lease_id).sandbox_id;
  const store::SandboxFilter idle{.status = SandboxState::idle};
  const auto listed = await(server()->leases.sandboxes(admin(), *company_, idle, {}));
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->rows.size(), 1U);
  const SandboxView& kept = listed->rows.front();
  EXPECT_EQ(kept.id, id);
  EXPECT_EQ(kept.environment_id, environment_->id);
  EXPECT_EQ(kept.lease_id, std::nullopt);
  ASSERT_TRUE(kept.expires_at);
  EXPECT_TRUE(kept.next_step.contains("until " + to_iso8601(*kept.expires_at))) << kept.next_step;
  const auto over = await(server()->leases.get(admin(), *first.lease_id));
  EXPECT_TRUE(over->next_step.contains("berth sandbox rm " + id.str())) << over->next_step;

  boxes_->refused.insert(box_of(first));
  const auto remove = [&] { return *await(server()->leases.remove_sandbox(admin(), id)); };
  EXPECT_TRUE(remove().failure_reason) << "it says why, and can be asked again";
  boxes_->refused.clear();
  EXPECT_EQ(remove().status, SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
  EXPECT_EQ(remove().status, SandboxState::destroyed);
}

TEST_P(Reuse, ASandboxThatALeaseHoldsIsNotRemovedByItsId) {
  const core::RunId run = start_in_box({"sleep", "60"});
  const RunView view = reaches(run, RunState::running);
  const core::SandboxId id = *lease(*view.lease_id).sandbox_id;
  EXPECT_FAILS(await(server()->leases.remove_sandbox(admin(), id)), Errc::conflict);
  EXPECT_EQ(state_of(view), SandboxState::leased);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), run)));
  ended(run);
}

TEST_P(Reuse, ASandboxThatTheProviderLostIsReplaced) {
  const RunView first = ran_in_box({"true"});
  boxes_->there.clear();
  const RunView second = ran_in_box({"true"});
  EXPECT_EQ(second.status, RunState::succeeded);
  EXPECT_NE(box_of(second), box_of(first));
  EXPECT_EQ(sandbox(*lease(*second.lease_id).sandbox_id).provider_lease_id, box_of(second));
}

TEST_P(Reuse, AnIdleSandboxIsDestroyedWhenItsTimeIsOver) {
  const RunView first = ran_in_box({"true"});
  hand_.turn(29min);
  sweep();
  EXPECT_EQ(state_of(first), SandboxState::idle);
  hand_.turn(2min);
  boxes_->refused.insert(box_of(first));
  sweep();
  EXPECT_EQ(state_of(first), SandboxState::destroying) << "it is tried again";
  EXPECT_NE(box_of(ran_in_box({"true"})), box_of(first)) << "it serves nobody any more";
  boxes_->refused.clear();
  hand_.turn(1min);
  sweep();
  EXPECT_EQ(state_of(first), SandboxState::destroyed);
  EXPECT_FALSE(boxes_->there.contains(box_of(first)));
}

TEST_P(Reuse, ATestTakesNoSandboxFromRunsAndLeavesNoneToThem) {
  const RunView before = ran_in_box({"true"});
  const auto report = await(server()->leases.test(admin(), environment_->id));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << report->summary;
  const auto id =
      core::LeaseId::parse(std::string_view{report->details->at("leaseId").as_string()});
  const core::LeaseRecord over = lease(*id);
  EXPECT_EQ(over.status, LeaseState::released);
  EXPECT_EQ(over.lease_policy, LeasePolicy::ephemeral);
  EXPECT_EQ(over.heartbeat_run_id, std::nullopt);
  EXPECT_EQ(over.teardown.config.at("reuseLease"), bj::value(false));
  EXPECT_EQ(over.teardown.config.at("archiveOnRelease"), bj::value(true));
  EXPECT_EQ(report->details->at("metadata"), bj::value(*over.metadata));
  EXPECT_EQ(sandbox(*over.sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, std::set<std::string>{box_of(before)});
  EXPECT_EQ(box_of(ran_in_box({"true"})), box_of(before));
}

TEST_P(Reuse, ATestOfAFakeWithReuseHasAnIdOfItsOwn) {
  Server& other = add_server("other");
  const core::Environment fake =
      put_environment(DriverKind::sandbox, "fake",
                      {{"provider", "fake"}, {"image", "ubuntu:24.04"}, {"reuseLease", true}});
  const auto report = await(other->leases.test(admin(), fake.id));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << report->summary;
  EXPECT_NE(report->details->at("providerLeaseId").as_string(), "sandbox://fake/" + fake.id.str());
  EXPECT_EQ(held(), 0);
}

TEST_P(Reuse, ATestTellsThatItsLeaseCouldNotBeGivenBack) {
  boxes_->refused.insert("");
  const auto report = await(server()->leases.test(admin(), environment_->id));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->ok);
  EXPECT_EQ(report->steps.back().name, "release");
  EXPECT_EQ(report->steps.back().code, "lease_release_failed");
  EXPECT_EQ(held(), 1);
  boxes_->refused.clear();
  hand_.turn(1s);
  sweep();
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(boxes_->there, std::set<std::string>{});
}

TEST_P(Reuse, ATestOfTheLocalEnvironmentRunsACommandAndTimesEachStep) {
  const auto report = await(server()->leases.test(admin(), local()));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->ok) << report->summary;
  std::vector<std::string> names;
  for (const places::ProbeStep& step : report->steps) names.push_back(step.name);
  const std::vector<std::string> last(names.end() - 3, names.end());
  EXPECT_EQ(last, (std::vector<std::string>{"lease", "command", "release"}));
  EXPECT_EQ(held(), 0);
}

}  // namespace
}  // namespace berth::engine
