#include "contract/engine_fixture.hpp"
#include "engine/secrets/vault_key.hpp"
#include "engine/upkeep/janitor.hpp"
#include "engine/upkeep/retention.hpp"
#include "store/places/leases.hpp"
#include "store/retention.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

using namespace std::chrono_literals;
using core::RunState;

constexpr auto day = std::chrono::hours{24};

class RetentionTest : public EngineContract {
 protected:
  void SetUp() override {
    EngineContract::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(run(adopt_vault_key(engine_->services)));
    company_ = given_company("Acme").id;
  }

  void set(std::int64_t run_days, std::int64_t log_days, std::int64_t event_days) {
    UpdateSettings change;
    change.run_retention_days = {true, run_days};
    change.log_retention_days = {true, log_days};
    change.event_retention_days = {true, event_days};
    EXPECT_WORKS(run(engine_->settings.update(admin(), change)));
  }

  // A run that ends now, with a log of 5 bytes and an event.
  core::RunId ended_run(std::optional<core::RunId> retry_of = {}) {
    clock_.advance(1ms);
    core::Run made = StoreContract::run(*company_);
    made.status = RunState::succeeded;
    made.retry_of_run_id = std::move(retry_of);
    made.log_bytes = 5;
    made.finished_at = now();
    put(made);
    auto log = logs_->writer(made.id);
    EXPECT_TRUE(log) << log.error().message;
    EXPECT_WORKS(log->append(core::OutputStream::stdout_, now(), "hello"));
    return made.id;
  }
  void put(const core::Run& made) {
    EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
      BERTH_DO(store::insert_run(s, made));
      BERTH_DO(store::append_run_event(s, {.company_id = made.company_id,
                                           .run_id = made.id,
                                           .event_type = "lifecycle",
                                           .message = "hello",
                                           .created_at = now()}));
      return {};
    }));
  }

  void clean() { EXPECT_WORKS(run(clean_once(engine_->services, *logs_, engine_->guards.quotas))); }
  bool is_kept(const core::RunId& id) {
    return read(
               [&](store::Session& s) { return store::find_run(s, core::Reach::everything(), id); })
        .has_value();
  }
  std::int64_t stored() { return engine_->guards.quotas.bytes(*company_); }

  std::optional<core::CompanyId> company_;
};
BERTH_ON_BOTH_ENGINES(RetentionTest);

TEST_P(RetentionTest, KeepsEverythingInAHomeThatNeverSetIt) {
  const core::RunId old = ended_run();
  clock_.advance(1000 * day);
  clean();
  EXPECT_TRUE(is_kept(old));
  EXPECT_TRUE(logs_->has(old));
}

TEST_P(RetentionTest, SetsItInANewHomeOnly) {
  EXPECT_WORKS(run(engine_->companies.ensure_one()));
  EXPECT_EQ(run(engine_->settings.get(admin()))->value.run_retention_days, 0)
      << "a company is there";
  EXPECT_WORKS(write([](store::Session& s) { return store::query(s, "delete from companies"); }));
  EXPECT_WORKS(run(engine_->companies.ensure_one()));
  const auto settings = run(engine_->settings.get(admin()));
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->value.run_retention_days, 90);
  EXPECT_EQ(settings->value.log_retention_days, 30);
  EXPECT_GT(settings->value.company_bytes_max, 0);
}

TEST_P(RetentionTest, RemovesARunWithItsLogAndEventsWhenItsTimeIsOver) {
  set(10, 0, 0);
  const core::RunId old = ended_run();
  clock_.advance(9 * day);
  const core::RunId young = ended_run();
  clean();
  EXPECT_TRUE(is_kept(old)) << "its time is not over";
  clock_.advance(2 * day);
  clean();
  EXPECT_FALSE(is_kept(old));
  EXPECT_FALSE(logs_->has(old));
  EXPECT_TRUE(is_kept(young));
  EXPECT_TRUE(logs_->has(young));
  EXPECT_EQ(number("select count(*) from heartbeat_run_events"), 1);
}

TEST_P(RetentionTest, RemovesMoreThanOneBatch) {
  set(1, 0, 0);
  for (int i = 0; i < 230; ++i) ended_run();
  clock_.advance(2 * day);
  clean();
  EXPECT_EQ(number("select count(*) from heartbeat_runs"), 0);
  EXPECT_EQ(logs_->list()->size(), 0U);
  EXPECT_EQ(stored(), 0);
}

TEST_P(RetentionTest, KeepsWhatIsNotOver) {
  set(1, 1, 1);
  core::Run working = StoreContract::run(*company_);
  working.status = RunState::running;
  working.log_bytes = 5;
  put(working);
  clock_.advance(1000 * day);
  clean();
  EXPECT_TRUE(is_kept(working.id));
  EXPECT_EQ(number("select count(*) from heartbeat_run_events"), 1) << "its work needs its events";
}

TEST_P(RetentionTest, KeepsARunAsLongAsTheRunThatRepeatsIt) {
  set(10, 0, 0);
  const core::RunId first = ended_run();
  clock_.advance(9 * day);
  const core::RunId again = ended_run(first);
  clock_.advance(2 * day);
  clean();
  EXPECT_TRUE(is_kept(first));
  clock_.advance(10 * day);
  clean();
  EXPECT_FALSE(is_kept(again));
  EXPECT_FALSE(is_kept(first));
}

TEST_P(RetentionTest, KeepsARunWhoseLeaseIsNotFinal) {
  set(1, 0, 0);
  const core::RunId old = ended_run();
  core::LeaseRecord lease =
      StoreContract::lease(given_environment(*company_, "e"), core::LeaseState::retained);
  lease.heartbeat_run_id = old;
  EXPECT_WORKS(write([&](store::Session& s) { return store::inserted_lease(s, lease); }));
  clock_.advance(5 * day);
  clean();
  EXPECT_TRUE(is_kept(old));
  EXPECT_FAILS(run(engine_->runs.remove(admin(), old)), Errc::conflict);
  EXPECT_WORKS(write([](store::Session& s) {
    return store::query(s, "update environment_leases set status = 'released'");
  }));
  clean();
  EXPECT_FALSE(is_kept(old));
  EXPECT_EQ(number("select count(*) from environment_leases"), 0) << "the lease goes with its run";
}

TEST_P(RetentionTest, RemovesALogBeforeItsRunAndSaysSo) {
  set(0, 3, 0);
  const core::RunId old = ended_run();
  clean();
  const std::int64_t before = stored();
  EXPECT_GE(before, 5);
  clock_.advance(4 * day);
  clean();
  EXPECT_TRUE(is_kept(old));
  EXPECT_FALSE(logs_->has(old));
  EXPECT_EQ(stored(), before - 5);
  const auto log = run(engine_->runs.log(admin(), old, {}));
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Errc::log_unavailable);
  EXPECT_TRUE(log.error().message.contains("retention")) << log.error().message;
}

TEST_P(RetentionTest, RemovesEventsBeforeTheirRun) {
  set(0, 0, 3);
  for (int i = 0; i < 600; ++i) ended_run();
  clock_.advance(4 * day);
  ended_run();
  clean();
  EXPECT_EQ(number("select count(*) from heartbeat_run_events"), 1);
  EXPECT_EQ(number("select count(*) from heartbeat_runs"), 601);
}

// A server that dies after the row marks a log as deleted, and before the files are deleted.
TEST_P(RetentionTest, RemovesTheLogsThatADeadServerLeftBehind) {
  const core::RunId deleted = ended_run();
  const core::RunId marked = ended_run();
  const core::RunId kept = ended_run();
  EXPECT_WORKS(write([&](store::Session& s) -> Result<> {
    BERTH_DO(store::delete_run(s, deleted));
    return store::mark_log_removed(s, marked, now());
  }));
  EXPECT_TRUE(logs_->has(deleted));
  clean();
  EXPECT_FALSE(logs_->has(deleted));
  EXPECT_FALSE(logs_->has(marked));
  EXPECT_TRUE(logs_->has(kept));
}

TEST_P(RetentionTest, LeavesTheLogWhereTheDeletionOfItsRunBreaksAtAnyStatement) {
  const core::RunId old = ended_run();
  int walked = 0;
  while (true) {
    failing_->fail_at(walked + 1);
    if (run(engine_->runs.remove(admin(), old))) break;
    EXPECT_TRUE(is_kept(old)) << "after statement " << walked + 1;
    EXPECT_TRUE(logs_->has(old)) << "after statement " << walked + 1;
    ASSERT_LT(++walked, 50);
  }
  EXPECT_GT(walked, 3);
  EXPECT_FALSE(logs_->has(old));
}

TEST_P(RetentionTest, AnOperatorDeletesARunThatIsOver) {
  const core::RunId old = ended_run();
  clean();
  const core::Call stranger{.who = {.kind = core::CallerKind::operator_key,
                                    .role = core::Role::operator_,
                                    .company_id = given_company("Other").id}};
  EXPECT_FAILS(run(engine_->runs.remove(stranger, old)), Errc::run_not_found);
  EXPECT_WORKS(run(engine_->runs.remove(admin(), old)));
  EXPECT_FALSE(is_kept(old));
  EXPECT_FALSE(logs_->has(old));
  EXPECT_EQ(stored(), 0);
  EXPECT_EQ(number("select count(*) from activity where action = 'heartbeat.deleted'"), 1);
  core::Run working = StoreContract::run(*company_);
  put(working);
  EXPECT_FAILS(run(engine_->runs.remove(admin(), working.id)), Errc::conflict);
}

class QuotaTest : public RetentionTest {
 protected:
  Result<core::Run> start() {
    StartRun wanted{.command = "true"};
    return run(engine_->runs.start(admin(), *company_, wanted));
  }
  void SetUp() override {
    RetentionTest::SetUp();
    if (IsSkipped()) return;
    const auto made = run(engine_->companies.create(admin(), {"Quoted", std::nullopt}));
    ASSERT_TRUE(made);
    company_ = made->value.id;
  }
  void expect_exceeded(const Result<core::Run>& run, std::string_view use, std::string_view limit) {
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code, Errc::quota_exceeded);
    for (const std::string_view said : {std::string_view{"Quoted"}, use, limit}) {
      EXPECT_TRUE(run.error().message.contains(said)) << run.error().message;
    }
    EXPECT_TRUE(run.error().remedy.contains("berth company quota Quoted")) << run.error().remedy;
  }
};
BERTH_ON_BOTH_ENGINES(QuotaTest);

TEST_P(QuotaTest, LimitsTheRunsThatWaitOrWork) {
  UpdateSettings change;
  change.company_runs_max = {true, 3};
  EXPECT_WORKS(run(engine_->settings.update(admin(), change)));
  core::Run last = *start();
  EXPECT_WORKS(start());
  EXPECT_WORKS(start());
  expect_exceeded(start(), "3 runs", "quota is 3");
  EXPECT_WORKS(run(engine_->runs.cancel(admin(), last.id)));
  EXPECT_WORKS(start());
  UpdateQuota more;
  more.runs_max = {true, 4};
  EXPECT_WORKS(run(engine_->guards.quotas.update(admin(), *company_, more)));
  EXPECT_WORKS(start());
  expect_exceeded(start(), "4 runs", "quota is 4");
}

TEST_P(QuotaTest, LimitsTheBytesThatRunsLeaveAndShowsThem) {
  ended_run();
  clean();
  const std::int64_t used = stored();
  EXPECT_GE(used, 5);
  UpdateQuota change;
  change.bytes_max = {true, used};
  const auto usage = run(engine_->guards.quotas.update(admin(), *company_, change));
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_EQ(usage->bytes, used);
  EXPECT_EQ(usage->bytes_max, used);
  EXPECT_EQ(usage->runs_max, std::nullopt);
  EXPECT_EQ(usage->agent_payload_bytes_max, 16 << 10);
  expect_exceeded(start(), std::to_string(used) + " bytes", "quota is " + std::to_string(used));
  const core::CompanyId other =
      run(engine_->companies.create(admin(), {"B", std::nullopt}))->value.id;
  EXPECT_WORKS(run(engine_->runs.start(admin(), other, {.command = "true"})));
  change.bytes_max = {true, std::nullopt};
  EXPECT_WORKS(run(engine_->guards.quotas.update(admin(), *company_, change)));
  EXPECT_WORKS(start());
}

TEST_P(QuotaTest, CountsTheFinishedRunsOfEachCompany) {
  for (int i = 0; i < 3; ++i) ended_run();
  const auto counted = read(store::stored_bytes);
  ASSERT_TRUE(counted) << counted.error().message;
  ASSERT_EQ(counted->size(), 1U);
  EXPECT_GE(counted->front().bytes, 15);
}

}  // namespace
}  // namespace berth::engine
