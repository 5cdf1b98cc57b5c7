#pragma once

#include "base/names.hpp"
#include "base/result.hpp"

#include <algorithm>
#include <span>

// The life cycles of runs, leases, sandboxes, templates and setup sessions, as tables. A step that
// is not in a table is a conflict.
namespace berth::core {

template <class State, class Event>
struct Step {
  State from;
  Event on;
  State to;
};

BOOST_DEFINE_ENUM_CLASS(RunState, queued, starting, running, succeeded, failed, cancelled,
                        timed_out, interrupted)
BOOST_DEFINE_ENUM_CLASS(RunEvent, claimed, started, setup_failed, exited_zero, exited_nonzero,
                        cancelled, deadline_passed, interrupted)

BOOST_DEFINE_ENUM_CLASS(LeaseState, acquiring, active, releasing, retained, pending_cleanup,
                        released, expired, failed)
// The events of a lease. `release_*` carry the outcome of the run (see release_event);
// `teardown_failed` hands the lease to the sweeper.
BOOST_DEFINE_ENUM_CLASS(LeaseEvent, acquired, acquire_failed, release_begun, retain,
                        release_succeeded, release_expired, release_failed, teardown_failed,
                        cleaned_up)

BOOST_DEFINE_ENUM_CLASS(SandboxState, creating, idle, leased, destroying, destroyed, lost)
BOOST_DEFINE_ENUM_CLASS(SandboxEvent, created, claimed, given_back, destroy_begun, destroyed,
                        vanished)

// `capturing` records the intent; a template that could not be captured is deleted like any other.
BOOST_DEFINE_ENUM_CLASS(TemplateState, capturing, ready, deleting, deleted)
BOOST_DEFINE_ENUM_CLASS(TemplateEvent, captured, delete_begun, deleted)

BOOST_DEFINE_ENUM_CLASS(SetupState, starting, waiting_for_user, capturing, promoted, cancelled,
                        timed_out, failed)
BOOST_DEFINE_ENUM_CLASS(SetupEvent, opened, capture_begun, capture_failed, promoted, cancelled,
                        expired, failed)

std::span<const Step<RunState, RunEvent>> run_steps();
std::span<const Step<LeaseState, LeaseEvent>> lease_steps();
std::span<const Step<SandboxState, SandboxEvent>> sandbox_steps();
std::span<const Step<TemplateState, TemplateEvent>> template_steps();
std::span<const Step<SetupState, SetupEvent>> setup_steps();

Result<RunState> advance(RunState from, RunEvent on);
Result<LeaseState> advance(LeaseState from, LeaseEvent on);
Result<SandboxState> advance(SandboxState from, SandboxEvent on);
Result<TemplateState> advance(TemplateState from, TemplateEvent on);
Result<SetupState> advance(SetupState from, SetupEvent on);

// Nothing follows this state, so the row no longer needs an owner.
bool is_final(RunState state);
bool is_final(LeaseState state);
bool is_final(SandboxState state);
bool is_final(TemplateState state);
bool is_final(SetupState state);

// How a run's lease ends: cancelled gives expired, failed and timed out give failed, everything
// else gives released.
LeaseEvent release_event(RunState run);

}  // namespace berth::core
