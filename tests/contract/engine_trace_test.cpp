#include "contract/work_fixture.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"

#include <gmock/gmock.h>

namespace berth::engine {
namespace {

using core::LeaseState;
using core::RunState;
using core::SandboxState;
using testing::HasSubstr;
using Names = std::set<std::string>;

// A provider that is known only by its responses, one of which gets lost.
class Unanswered : public WorkContract {
 protected:
  void SetUp() override {
    WorkContract::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    boxes_ = &server().use_boxes();
    boxes_->finds_by_answer = true;
    environment_ = put_boxes();
  }

  LeaseLifecycle::Row intended(const core::Run& run) {
    auto row = write([&](store::Session& s) {
      return server()->lease_lifecycle.intend(s, fresh<core::LeaseId>(), *environment_, &run, {});
    });
    EXPECT_WORKS(row);
    return *row;
  }
  // The lease of a finished run, after the response to its acquire was lost.
  core::LeaseId unanswered() {
    const core::Run run = put_run(*environment_, RunState::failed);
    const LeaseLifecycle::Row row = intended(run);
    boxes_->answers_to_lose = 1;
    EXPECT_EQ(failure_of(row, {}), Errc::plugin_unavailable);
    EXPECT_TRUE(await(server()->lease_lifecycle.settle(row)));
    return row.value.id;
  }
  std::optional<Errc> failure_of(const LeaseLifecycle::Row& row, LeaseLifecycle::Ask ask) {
    const auto held = await(server()->lease_lifecycle.acquire(row, std::move(ask), {}));
    return held ? std::nullopt : std::optional{held.error().code};
  }
  std::size_t asked() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        boxes_->verbs, [](const std::string& verb) { return verb.starts_with("acquire"); }));
  }

  Boxes* boxes_ = nullptr;
  std::optional<core::Environment> environment_;
};
BERTH_ON_BOTH_ENGINES(Unanswered);

TEST_P(Unanswered, ASandboxThatIsNamedByItsRunIsFoundByAskingAgainAndDestroyed) {
  boxes_->names_by_run = true;
  const core::LeaseRecord over = lease(unanswered());
  EXPECT_EQ(over.status, LeaseState::failed);
  EXPECT_EQ(sandbox(*over.sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, Names{});
}

TEST_P(Unanswered, OneThatNobodyCanFindWaitsForAnOperatorWithAllThatIsKnownOfIt) {
  const core::LeaseId id = unanswered();
  const core::LeaseRecord row = lease(id);
  EXPECT_EQ(row.status, LeaseState::pending_cleanup);
  EXPECT_EQ(row.parked_at, hand_.now());
  EXPECT_TRUE(sandbox(*row.sandbox_id).parked_at);
  for (const std::string& part :
       {std::string{"acquire_unanswered: "}, id.str(), row.heartbeat_run_id->str(),
        std::string{"environment \"boxes\""}, to_iso8601(row.created_at)}) {
    EXPECT_THAT(row.failure_reason.value_or(""), HasSubstr(part));
  }
  const LeaseView view = *await(server()->leases.get(admin(), id));
  EXPECT_THAT(view.next_step, HasSubstr("berth lease adopt " + id.str() + " --sandbox ID"));
  EXPECT_THAT(view.next_step, HasSubstr("berth lease force-resolve " + id.str()));
  EXPECT_EQ(boxes_->there, Names{"box-1"}) << "what the search itself got is gone";

  const std::size_t so_far = asked();
  hand_.turn(24h);
  sweep();
  EXPECT_WORKS(await(server()->leases.release(admin(), id)));
  EXPECT_TRUE(lease(id).parked_at);
  EXPECT_EQ(asked(), so_far) << "each search would make two more";
  EXPECT_WORKS(await(server()->leases.force_resolve(admin(), id, {"not there"})));
}

TEST_P(Unanswered, TheOneThatAnOperatorNamesIsDestroyed) {
  const core::LeaseId id = unanswered();
  EXPECT_FAILS(await(server()->leases.adopt(admin(), id, {""})), Errc::validation_failed);
  const auto done = await(server()->leases.adopt(admin(), id, {"box-1"}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->status, LeaseState::expired);
  EXPECT_EQ(sandbox(*lease(id).sandbox_id).status, SandboxState::destroyed);
  EXPECT_EQ(boxes_->there, Names{});
  EXPECT_WORKS(await(server()->leases.adopt(admin(), id, {"box-1"})));  // repeating it does no harm
}

TEST_P(Unanswered, TheOneThatIsNotThereIsForgotten) {
  const core::LeaseId id = unanswered();
  const auto done = await(server()->leases.force_resolve(admin(), id, {"not there"}));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->status, LeaseState::expired);
  EXPECT_EQ(sandbox(*lease(id).sandbox_id).status, SandboxState::lost);
  EXPECT_WORKS(await(server()->environments.remove(admin(), environment_->id)));
  EXPECT_WORKS(await(server()->lease_lifecycle.remove_held({.key = id})));
}

TEST_P(Unanswered, ASandboxThatAnotherLeaseHoldsIsNotTakenForIt) {
  const core::LeaseId id = unanswered();
  const LeaseLifecycle::Row held =
      acquire(*environment_, put_run(*environment_, RunState::starting));
  const auto refused = await(server()->leases.adopt(admin(), id, {*held.value.provider_lease_id}));
  EXPECT_FAILS(refused, Errc::conflict);
  EXPECT_TRUE(boxes_->there.contains(*held.value.provider_lease_id));
  EXPECT_FAILS(await(server()->leases.adopt(admin(), held.value.id, {"box-1"})), Errc::conflict);
  release(held);
  EXPECT_WORKS(await(server()->leases.adopt(admin(), id, {"box-1"})));
}

TEST_P(Unanswered, WhatTheSearchGotAndCouldNotDestroyIsNotForgotten) {
  boxes_->refused = {"box-2", "box-3"};
  const core::LeaseId id = unanswered();
  EXPECT_EQ(lease(id).status, LeaseState::pending_cleanup);
  EXPECT_EQ(lease(id).parked_at, std::nullopt) << "it is tried again";
  const std::size_t so_far = asked();
  boxes_->refused.clear();
  hand_.turn(1min);
  sweep();
  EXPECT_TRUE(lease(id).parked_at);
  EXPECT_EQ(asked(), so_far);
  EXPECT_EQ(boxes_->there, Names{"box-1"});
  EXPECT_WORKS(await(server()->leases.adopt(admin(), id, {"box-1"})));
}

TEST_P(Unanswered, ASearchThatIsNotAnsweredEitherIsRepeatedAndLosesNothingThatIsNamedByItsRun) {
  boxes_->names_by_run = true;
  const LeaseLifecycle::Row row = intended(put_run(*environment_, RunState::failed));
  boxes_->answers_to_lose = 3;
  EXPECT_EQ(failure_of(row, {}), Errc::plugin_unavailable);
  EXPECT_TRUE(await(server()->lease_lifecycle.settle(row)));
  EXPECT_EQ(lease(row.value.id).status, LeaseState::pending_cleanup);
  for (int attempt = 0; attempt < 3; ++attempt) {
    hand_.turn(1min);
    sweep();
  }
  EXPECT_EQ(lease(row.value.id).status, LeaseState::expired);
  EXPECT_EQ(boxes_->there, Names{});
}

TEST_P(Unanswered, ARefusalInWordsIsAnAnswerAndNobodyIsAskedAgain) {
  server().open();
  boxes_->refuses_in_words = true;
  StartRun wanted = program({"true"});
  wanted.environment_id = environment_->id;
  const RunView view = ran(std::move(wanted));
  EXPECT_EQ(view.status, RunState::failed);
  EXPECT_EQ(view.environment_lease->status, LeaseState::failed);
  EXPECT_EQ(boxes_->verbs, std::vector<std::string>{});
}

TEST_P(Unanswered, AServerThatGoesOnWithARunTakesTheSandboxThatItsPredecessorAskedFor) {
  const LeaseLifecycle::Ask again{.before = LeaseLifecycle::Ask::Before::maybe};
  for (const bool by_run : {true, false}) {
    boxes_->names_by_run = by_run;
    const RunState state = by_run ? RunState::starting : RunState::failed;
    const LeaseLifecycle::Row row = intended(put_run(*environment_, state));
    boxes_->answers_to_lose = 1;
    EXPECT_EQ(failure_of(row, {}), Errc::plugin_unavailable);
    const std::set<std::string> made = boxes_->there;
    if (by_run) {
      const auto held = await(server()->lease_lifecycle.acquire(row, again, {}));
      ASSERT_TRUE(held) << held.error().message;
      EXPECT_EQ(boxes_->there, made);
      EXPECT_EQ(made, Names{*held->lease.value.provider_lease_id});
      release(held->lease);
    } else {
      EXPECT_EQ(failure_of(row, again), Errc::lease_acquire_failed);
      EXPECT_TRUE(await(server()->lease_lifecycle.settle(row)));
      EXPECT_TRUE(lease(row.value.id).parked_at);
      EXPECT_EQ(boxes_->there, made) << "but for the first one all are gone";
      EXPECT_WORKS(await(server()->leases.force_resolve(admin(), row.value.id, {"not there"})));
    }
  }
}

}  // namespace
}  // namespace berth::engine
