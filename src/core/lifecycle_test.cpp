#include "core/lifecycle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace berth::core {
namespace {

// The life cycles, state by state: which events are allowed and where they lead. Any other step
// must be rejected.
template <class State, class Event>
using Life = std::map<State, std::map<Event, State>>;

const Life<RunState, RunEvent>& run_life() {
  using S = RunState;
  using E = RunEvent;
  static const Life<S, E> life = {
      {S::queued,
       {{E::claimed, S::starting},
        {E::cancelled, S::cancelled},
        {E::setup_failed, S::failed},
        {E::deadline_passed, S::timed_out}}},
      {S::starting,
       {{E::started, S::running},
        {E::cancelled, S::cancelled},
        {E::setup_failed, S::failed},
        {E::deadline_passed, S::timed_out},
        {E::interrupted, S::interrupted}}},
      {S::running,
       {{E::exited_zero, S::succeeded},
        {E::exited_nonzero, S::failed},
        {E::cancelled, S::cancelled},
        {E::deadline_passed, S::timed_out},
        {E::interrupted, S::interrupted}}},
  };
  return life;
}

const Life<LeaseState, LeaseEvent>& lease_life() {
  using S = LeaseState;
  using E = LeaseEvent;
  static const Life<S, E> life = {
      {S::acquiring,
       {{E::acquired, S::active},
        {E::acquire_failed, S::failed},
        {E::teardown_failed, S::pending_cleanup}}},
      {S::active,
       {{E::release_begun, S::releasing},
        {E::retain, S::retained},
        {E::teardown_failed, S::pending_cleanup}}},
      {S::releasing,
       {{E::release_succeeded, S::released},
        {E::release_expired, S::expired},
        {E::release_failed, S::failed},
        {E::teardown_failed, S::pending_cleanup}}},
      {S::retained, {{E::release_begun, S::releasing}, {E::teardown_failed, S::pending_cleanup}}},
      {S::pending_cleanup, {{E::teardown_failed, S::pending_cleanup}, {E::cleaned_up, S::expired}}},
  };
  return life;
}

const Life<SandboxState, SandboxEvent>& sandbox_life() {
  using S = SandboxState;
  using E = SandboxEvent;
  static const Life<S, E> life = {
      {S::creating,
       {{E::created, S::leased},
        {E::given_back, S::idle},
        {E::destroy_begun, S::destroying},
        {E::vanished, S::lost}}},
      {S::idle,
       {{E::claimed, S::leased}, {E::destroy_begun, S::destroying}, {E::vanished, S::lost}}},
      {S::leased,
       {{E::given_back, S::idle}, {E::destroy_begun, S::destroying}, {E::vanished, S::lost}}},
      {S::destroying, {{E::destroyed, S::destroyed}, {E::vanished, S::destroyed}}},
  };
  return life;
}

const Life<TemplateState, TemplateEvent>& template_life() {
  using S = TemplateState;
  using E = TemplateEvent;
  static const Life<S, E> life = {
      {S::capturing, {{E::captured, S::ready}, {E::delete_begun, S::deleting}}},
      {S::ready, {{E::delete_begun, S::deleting}}},
      {S::deleting, {{E::deleted, S::deleted}}},
  };
  return life;
}

const Life<SetupState, SetupEvent>& setup_life() {
  using S = SetupState;
  using E = SetupEvent;
  static const Life<S, E> life = {
      {S::starting,
       {{E::opened, S::waiting_for_user},
        {E::cancelled, S::cancelled},
        {E::expired, S::timed_out},
        {E::failed, S::failed}}},
      {S::waiting_for_user,
       {{E::capture_begun, S::capturing},
        {E::cancelled, S::cancelled},
        {E::expired, S::timed_out},
        {E::failed, S::failed}}},
      {S::capturing, {{E::capture_failed, S::waiting_for_user}, {E::promoted, S::promoted}}},
  };
  return life;
}

// One state machine, as the tests below need it.
template <class StateType, class EventType, const Life<StateType, EventType>& (*life)(),
          StateType first_state>
struct Machine {
  using State = StateType;
  using Event = EventType;
  static const Life<State, Event>& expected() { return life(); }
  static constexpr State first = first_state;
};
using RunMachine = Machine<RunState, RunEvent, run_life, RunState::queued>;
using LeaseMachine = Machine<LeaseState, LeaseEvent, lease_life, LeaseState::acquiring>;
using SandboxMachine = Machine<SandboxState, SandboxEvent, sandbox_life, SandboxState::creating>;
using TemplateMachine =
    Machine<TemplateState, TemplateEvent, template_life, TemplateState::capturing>;
using SetupMachine = Machine<SetupState, SetupEvent, setup_life, SetupState::starting>;

// Every state that can follow, in any number of steps.
template <class State, class Event>
std::set<State> reachable_from(State from) {
  std::set<State> seen;
  std::vector<State> open{from};
  while (!open.empty()) {
    const State at = open.back();
    open.pop_back();
    for (const Event on : all<Event>()) {
      const Result<State> next = advance(at, on);
      if (next && seen.insert(*next).second) open.push_back(*next);
    }
  }
  return seen;
}

template <class M>
class Lifecycle : public testing::Test {};
using Machines =
    testing::Types<RunMachine, LeaseMachine, SandboxMachine, TemplateMachine, SetupMachine>;
TYPED_TEST_SUITE(Lifecycle, Machines);

TYPED_TEST(Lifecycle, AcceptsExactlyTheStepsOfTheDesign) {
  using State = typename TypeParam::State;
  using Event = typename TypeParam::Event;
  for (const State from : all<State>()) {
    for (const Event on : all<Event>()) {
      const auto state = TypeParam::expected().find(from);
      const bool stated = state != TypeParam::expected().end() && state->second.contains(on);
      const Result<State> next = advance(from, on);
      ASSERT_EQ(next.has_value(), stated) << name_of(from) << " on " << name_of(on);
      if (stated) EXPECT_EQ(*next, state->second.at(on)) << name_of(from) << " on " << name_of(on);
    }
  }
}

TYPED_TEST(Lifecycle, RefusesAsAConflictThatNamesEventAndState) {
  using State = typename TypeParam::State;
  for (const State from : all<State>()) {
    for (const auto on : all<typename TypeParam::Event>()) {
      const Result<State> next = advance(from, on);
      if (next) continue;
      EXPECT_EQ(next.error().code, Errc::conflict);
      EXPECT_EQ(next.error().message,
                std::string{name_of(on)} + " does not follow " + std::string{name_of(from)});
    }
  }
}

TYPED_TEST(Lifecycle, NoEventLeavesAFinalState) {
  using State = typename TypeParam::State;
  int final_states = 0;
  for (const State from : all<State>()) {
    if (!is_final(from)) continue;
    ++final_states;
    for (const auto on : all<typename TypeParam::Event>()) {
      EXPECT_FALSE(advance(from, on)) << name_of(from) << " on " << name_of(on);
    }
  }
  EXPECT_GT(final_states, 0);
}

TYPED_TEST(Lifecycle, EveryOtherStateCanReachAFinalOne) {
  using State = typename TypeParam::State;
  for (const State from : all<State>()) {
    if (is_final(from)) continue;
    const auto later = reachable_from<State, typename TypeParam::Event>(from);
    EXPECT_TRUE(std::ranges::any_of(later, [](State s) { return is_final(s); })) << name_of(from);
  }
}

TYPED_TEST(Lifecycle, EveryStateCanBeReachedFromTheFirst) {
  using State = typename TypeParam::State;
  auto seen = reachable_from<State, typename TypeParam::Event>(TypeParam::first);
  seen.insert(TypeParam::first);
  for (const State state : all<State>()) EXPECT_TRUE(seen.contains(state)) << name_of(state);
}

TYPED_TEST(Lifecycle, EveryEventMovesSomething) {
  for (const auto on : all<typename TypeParam::Event>()) {
    bool moves = false;
    for (const auto from : all<typename TypeParam::State>()) moves = moves || advance(from, on);
    EXPECT_TRUE(moves) << name_of(on);
  }
}

// The table that the HTTP documentation and the sweeper read must be the one that advance uses.
TEST(LifecycleSteps, NameEachStepOnce) {
  const auto check = [](auto steps, const auto& life) {
    std::size_t expected = 0;
    for (const auto& [from, events] : life) expected += events.size();
    EXPECT_EQ(steps.size(), expected);
    for (const auto& step : steps) EXPECT_EQ(advance(step.from, step.on), step.to);
  };
  check(run_steps(), run_life());
  check(lease_steps(), lease_life());
  check(sandbox_steps(), sandbox_life());
  check(template_steps(), template_life());
  check(setup_steps(), setup_life());
}

TEST(RunLifecycle, FinalStatesAreTheFiveWaysToEnd) {
  const std::set<RunState> ends{RunState::succeeded, RunState::failed, RunState::cancelled,
                                RunState::timed_out, RunState::interrupted};
  for (const RunState state : all<RunState>()) {
    EXPECT_EQ(is_final(state), ends.contains(state)) << name_of(state);
  }
}

TEST(RunLifecycle, SucceedsOnlyByRunning) {
  for (const RunState from : all<RunState>()) {
    const Result<RunState> next = advance(from, RunEvent::exited_zero);
    EXPECT_EQ(next.has_value(), from == RunState::running) << name_of(from);
  }
}

TEST(LeaseLifecycle, FinalStatesAreReleasedExpiredAndFailed) {
  const std::set<LeaseState> ends{LeaseState::released, LeaseState::expired, LeaseState::failed};
  for (const LeaseState state : all<LeaseState>()) {
    EXPECT_EQ(is_final(state), ends.contains(state)) << name_of(state);
  }
}

TEST(LeaseLifecycle, EveryLeaseThatIsNotFinalCanBeHandedToTheSweeper) {
  for (const LeaseState from : all<LeaseState>()) {
    const Result<LeaseState> next = advance(from, LeaseEvent::teardown_failed);
    EXPECT_EQ(next.has_value(), !is_final(from)) << name_of(from);
    if (next) EXPECT_EQ(*next, LeaseState::pending_cleanup) << name_of(from);
  }
}

TEST(LeaseLifecycle, OnlyAnActiveLeaseIsRetainedAndARetainedOneIsReleased) {
  for (const LeaseState from : all<LeaseState>()) {
    EXPECT_EQ(advance(from, LeaseEvent::retain).has_value(), from == LeaseState::active);
  }
  EXPECT_EQ(advance(LeaseState::retained, LeaseEvent::release_begun), LeaseState::releasing);
}

TEST(LeaseLifecycle, WhatWasPendingEndsAsExpired) {
  EXPECT_EQ((reachable_from<LeaseState, LeaseEvent>(LeaseState::pending_cleanup)),
            (std::set{LeaseState::pending_cleanup, LeaseState::expired}));
}

TEST(SandboxLifecycle, FinalMeansThatTheResourceIsGone) {
  const std::set<SandboxState> ends{SandboxState::destroyed, SandboxState::lost};
  for (const SandboxState state : all<SandboxState>()) {
    EXPECT_EQ(is_final(state), ends.contains(state)) << name_of(state);
  }
}

TEST(SandboxLifecycle, ASandboxThatMayExistCanBeDestroyed) {
  for (const SandboxState from : all<SandboxState>()) {
    if (is_final(from) || from == SandboxState::destroying) continue;
    EXPECT_EQ(advance(from, SandboxEvent::destroy_begun), SandboxState::destroying)
        << name_of(from);
  }
}

TEST(SandboxLifecycle, OneLeaseAtATime) {
  EXPECT_EQ(advance(SandboxState::idle, SandboxEvent::claimed), SandboxState::leased);
  EXPECT_FALSE(advance(SandboxState::leased, SandboxEvent::claimed));
  EXPECT_FALSE(advance(SandboxState::destroying, SandboxEvent::claimed));
}

TEST(ReleaseEvent, FollowsFromHowTheRunEnded) {
  const std::map<RunState, LeaseState> ends = {
      {RunState::queued, LeaseState::released},      {RunState::starting, LeaseState::released},
      {RunState::running, LeaseState::released},     {RunState::succeeded, LeaseState::released},
      {RunState::interrupted, LeaseState::released}, {RunState::failed, LeaseState::failed},
      {RunState::timed_out, LeaseState::failed},     {RunState::cancelled, LeaseState::expired},
  };
  for (const RunState run : all<RunState>()) {
    EXPECT_EQ(advance(LeaseState::releasing, release_event(run)), ends.at(run)) << name_of(run);
  }
}

}  // namespace
}  // namespace berth::core
