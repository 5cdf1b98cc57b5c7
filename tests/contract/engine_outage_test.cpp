#include "contract/work_fixture.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"

#include <fstream>
#include <sstream>

// Runs while the store fails, the clock jumps and other servers want the same work.
namespace berth::engine {
namespace {

using core::RunState;

class Trouble : public WorkContract {
 protected:
  // Appends a line to a file for every execution.
  StartRun counted(const std::string& then = "") {
    return shell("echo $BERTH_RUN_ID >> " + ledger() + "; echo said" +
                 (then.empty() ? then : "; " + then));
  }
  std::string ledger() const { return folder_->path() + "/ledger"; }
  std::multiset<std::string> executions() const {
    std::multiset<std::string> all;
    std::ifstream lines{ledger()};
    for (std::string line; std::getline(lines, line);) all.insert(line);
    return all;
  }
  // Bypasses the failing store.
  core::Run row(const core::RunId& id) {
    auto found =
        read([&](store::Session& s) { return store::find_run(s, core::Reach::everything(), id); });
    EXPECT_WORKS(found);
    return std::move(found->value);
  }
  bool is_over(const core::RunId& id) {
    return core::is_final(row(id).status) && !server()->dispatcher.has(id);
  }
  void expect_no_gaps(const core::RunId& id) {
    const auto events =
        read([&](store::Session& s) { return store::run_events_after(s, id, 0, 100); });
    std::int64_t seq = 0;
    for (const core::RunEventRecord& event : *events) EXPECT_EQ(event.seq, ++seq);
    EXPECT_EQ(std::ranges::count(*events, "adapter.invoke", &core::RunEventRecord::event_type), 1);
  }
};

// Carries out runs while each transaction in turn fails.
class Outage : public Trouble {
 protected:
  void SetUp() override {
    Trouble::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    server().open();
    auto secret = await(server()->secrets.create(admin(), *company_, secret_named("token")));
    EXPECT_WORKS(secret);
    token_ = {{"type", "secret_ref"}, {"secretId", secret->id.str()}};
  }

  // A run whose n-th transaction fails; nothing when it had fewer.
  std::optional<core::Run> run_failing_at(const std::function<void()>& fail_nth) {
    StartRun wanted = counted();
    wanted.env = bj::object{{"TOKEN", *token_}};
    const core::RunId id = start(std::move(wanted));
    fail_nth();
    bool was_reminded = false;
    const auto ends = [&] {
      // Otherwise the dispatcher polls by itself, but later than a test wants to wait.
      if (failing_->has_failed() && !was_reminded && row(id).status == RunState::queued) {
        was_reminded = true;
        server()->dispatcher.poke();
      }
      return is_over(id);
    };
    EXPECT_TRUE(run_until(ends)) << "it is " << name_of(row(id).status);
    const bool failed = failing_->has_failed();
    failing_->refuse_transaction(0, Errc::bug);
    return failed ? std::optional{row(id)} : std::nullopt;
  }
  void expect_unharmed(const core::Run& run) {
    EXPECT_EQ(name_of(run.status), name_of(RunState::succeeded)) << run.error.value_or("");
    EXPECT_EQ(executions().count(run.id.str()), 1U);
    EXPECT_EQ(said(run.id), "said\n");
    EXPECT_EQ(held(), 0);
    expect_no_gaps(run.id);
  }

  std::optional<bj::object> token_;
};
BERTH_ON_BOTH_ENGINES(Outage);

constexpr int steps_max = 60;
constexpr int steps_least = 5;

TEST_P(Outage, ARunSucceedsAlthoughTheStoreWentAwayAtAnyOfItsSteps) {
  for (int nth = 1; nth <= steps_max; ++nth) {
    SCOPED_TRACE("transaction " + std::to_string(nth));
    const auto run =
        run_failing_at([&] { failing_->refuse_transaction(nth, Errc::store_unreachable); });
    if (!run) {
      EXPECT_GT(nth, steps_least);
      return;
    }
    expect_unharmed(*run);
  }
  FAIL() << "a run has no end of steps";
}

TEST_P(Outage, ARunSucceedsAlthoughTheStoresAnswerWasLostAtAnyOfItsSteps) {
  for (int nth = 1; nth <= steps_max; ++nth) {
    SCOPED_TRACE("transaction " + std::to_string(nth));
    const auto run = run_failing_at([&] { failing_->lose_answer(nth); });
    if (!run) {
      EXPECT_GT(nth, steps_least);
      return;
    }
    expect_unharmed(*run);
  }
  FAIL() << "a run has no end of steps";
}

TEST_P(Outage, ARunThatAStepFailedForGoodEndsAndLeavesNothingHeld) {
  for (int nth = 1; nth <= steps_max; ++nth) {
    SCOPED_TRACE("transaction " + std::to_string(nth));
    const auto run = run_failing_at([&] { failing_->refuse_transaction(nth, Errc::store_failed); });
    if (!run) {
      EXPECT_GT(nth, steps_least);
      return;
    }
    EXPECT_LE(executions().count(run->id.str()), 1U);
    if (run->status == RunState::succeeded) {
      EXPECT_EQ(said(run->id), "said\n");
    } else {
      EXPECT_EQ(run->error_code, "store_failed") << run->error.value_or("");
    }
    // The release of the lease failed; the sweeper handles it after a while.
    if (held() > 0) {
      hand_.turn(11min);
      sweep();
    }
    EXPECT_EQ(held(), 0);
  }
  FAIL() << "a run has no end of steps";
}

class Together : public Trouble {};
BERTH_ON_BOTH_ENGINES(Together);

TEST_P(Together, TwoServersNeverTakeTheSameRun) {
  Server& first = add_server("a", {.runs_max = 2});
  Server& second = add_server("b", {.runs_max = 2});
  // The first ones wait, so that neither server can do all of them.
  const std::string go = folder_->path() + "/go";
  const std::string wait = "while ! [ -e " + go + " ]; do sleep 0.02; done";
  std::set<std::string> started;
  for (int i = 0; i < 12; ++i) started.insert(start(counted(wait)).str());
  first.open();
  second.open();
  const auto taken_by = "select count(distinct node_id) from heartbeat_runs";
  EXPECT_TRUE(run_until([&] { return number(taken_by) == 2; })) << "both had room";
  std::ofstream{go} << "now";
  const auto all_over = [&] {
    return number("select count(*) from heartbeat_runs where status = 'succeeded'") == 12 &&
           held() == 0;
  };
  EXPECT_TRUE(run_until(all_over));
  const std::multiset<std::string> ran = executions();
  EXPECT_EQ(ran.size(), started.size());
  EXPECT_EQ((std::set<std::string>{ran.begin(), ran.end()}), started);
  EXPECT_EQ(number("select count(*) from environment_leases"), 12);
}

TEST_P(Together, ACancelThatAnotherServerTookIsCarriedOut) {
  Server& worker = add_server("worker");
  const core::RunId id = start(program({"sleep", "60"}));
  worker.open();
  reaches(id, RunState::running);
  EXPECT_WORKS(await(server()->runs.cancel(admin(), id)));
  worker->dispatcher.after_beat(false);
  EXPECT_TRUE(run_until([&] { return core::is_final(row(id).status) && held() == 0; }));
  EXPECT_EQ(row(id).status, RunState::cancelled);
}

TEST_P(Together, WhoAsksTheWrongServerLearnsAtOnceWhichIsTheRightOne) {
  Server& worker = add_server("worker");
  const std::string there = "(http://worker:3100)";
  const core::RunId id = start(program({"sleep", "60"}));
  worker.open();
  const RunView seen = reaches(id, RunState::running);
  ASSERT_TRUE(seen.server && seen.lease_id);
  EXPECT_EQ(seen.server->url, "http://worker:3100");
  // Also while there is no output yet: it will arrive there.
  const auto log = await(server()->runs.log(admin(), id, {}));
  EXPECT_FAILS(log, Errc::log_unavailable);
  EXPECT_TRUE(log.error().message.contains(there)) << log.error().message;
  EXPECT_FAILS(await(server()->runs.follow(admin(), id, 0)), Errc::log_unavailable);
  EXPECT_WORKS(await(worker->runs.log(admin(), id, {})));
  const Result<> sent = await(server()->runs.send(admin(), id, places::EndOfInput{}));
  EXPECT_FAILS(sent, Errc::conflict);
  const auto used = await(server()->leases.usage(admin(), *seen.lease_id));
  EXPECT_FAILS(used, Errc::conflict);
  EXPECT_TRUE(used.error().message.contains(there)) << used.error().message;
  EXPECT_EQ(await(server()->leases.get(admin(), *seen.lease_id))->server->url,
            "http://worker:3100");
  const auto all = await(server()->node.all());
  ASSERT_EQ(all->size(), 2U);
  for (const NodeView& node : *all) EXPECT_EQ(node.is_self, node.url == "http://first:3100");
  EXPECT_WORKS(await(worker->runs.cancel(admin(), id)));
  EXPECT_TRUE(run_until([&] { return core::is_final(row(id).status) && held() == 0; }));
}

TEST_P(Together, AServerThatWasGivenUpChangesNothingMore) {
  Server& worker = add_server("worker");
  const std::string go = folder_->path() + "/go";
  const core::RunId id = start(counted("while ! [ -e " + go + " ]; do sleep 0.02; done"));
  worker.open();
  reaches(id, RunState::running);
  EXPECT_WORKS(write([&](store::Session& s) {
    return store::query(s, "update nodes set fenced_at = $2 where id = $1", worker->node.id(),
                        hand_.now());
  }));
  std::ofstream{go} << "now";
  EXPECT_TRUE(run_until([&] { return !worker->dispatcher.has(id); }));
  EXPECT_EQ(row(id).status, RunState::running);
  // The first server cannot reach what the other one holds, and reports it when nothing can
  // survive.
  sweep();
  EXPECT_EQ(row(id).status, RunState::running);
  hand_.turn(6min);
  sweep();
  EXPECT_EQ(row(id).status, RunState::interrupted);
  EXPECT_EQ(row(id).error_code, "process_lost");
  hand_.turn(1min);
  sweep();
  EXPECT_EQ(held(), 0);
  EXPECT_EQ(executions().size(), 1U);
  EXPECT_WORKS(await(worker->lease_lifecycle.remove_held({.key = *row(id).lease_id})));
}

TEST_P(Together, AClockThatJumpsADayEndsNothing) {
  Server& other = add_server("other");
  server().open();
  const std::string go = folder_->path() + "/go";
  const core::RunId id = start(counted("while ! [ -e " + go + " ]; do sleep 0.02; done"));
  reaches(id, RunState::running);
  for (const auto jump : {24h, -48h, 24h}) {
    hand_.turn(jump);
    for (Server* each : {&server(), &other}) {
      sweep(*each);
      (*each)->dispatcher.after_beat(true);
    }
  }
  EXPECT_EQ(row(id).status, RunState::running);
  EXPECT_EQ(row(id).cancel_requested_at, std::nullopt);
  hand_.turn(-24h);
  std::ofstream{go} << "now";
  EXPECT_TRUE(run_until([&] { return is_over(id); }));
  EXPECT_EQ(row(id).status, RunState::succeeded);
  EXPECT_EQ(executions().size(), 1U);
  for (const core::PhaseTimes& phase : row(id).phases) {
    EXPECT_GE(*phase.finished_at, phase.started_at);
  }
  EXPECT_EQ(held(), 0);
}

}  // namespace
}  // namespace berth::engine
