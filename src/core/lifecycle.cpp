#include "core/lifecycle.hpp"

#include <array>
#include <string>

namespace berth::core {
namespace {

using R = RunState;
using RE = RunEvent;
constexpr Step<R, RE> run_table[] = {
    {R::queued, RE::claimed, R::starting},
    {R::queued, RE::cancelled, R::cancelled},
    {R::queued, RE::setup_failed, R::failed},
    {R::queued, RE::deadline_passed, R::timed_out},
    {R::starting, RE::started, R::running},
    {R::starting, RE::setup_failed, R::failed},
    {R::starting, RE::cancelled, R::cancelled},
    {R::starting, RE::deadline_passed, R::timed_out},
    {R::starting, RE::interrupted, R::interrupted},
    {R::running, RE::exited_zero, R::succeeded},
    {R::running, RE::exited_nonzero, R::failed},
    {R::running, RE::cancelled, R::cancelled},
    {R::running, RE::deadline_passed, R::timed_out},
    {R::running, RE::interrupted, R::interrupted},
};

using L = LeaseState;
using LE = LeaseEvent;
constexpr Step<L, LE> lease_table[] = {
    {L::acquiring, LE::acquired, L::active},
    {L::acquiring, LE::acquire_failed, L::failed},
    {L::acquiring, LE::teardown_failed, L::pending_cleanup},
    {L::active, LE::release_begun, L::releasing},
    {L::active, LE::retain, L::retained},
    {L::active, LE::teardown_failed, L::pending_cleanup},
    {L::releasing, LE::release_succeeded, L::released},
    {L::releasing, LE::release_expired, L::expired},
    {L::releasing, LE::release_failed, L::failed},
    {L::releasing, LE::teardown_failed, L::pending_cleanup},
    {L::retained, LE::release_begun, L::releasing},
    {L::retained, LE::teardown_failed, L::pending_cleanup},
    {L::pending_cleanup, LE::teardown_failed, L::pending_cleanup},  // retried, and counted
    {L::pending_cleanup, LE::cleaned_up, L::expired},
};

using S = SandboxState;
using SE = SandboxEvent;
constexpr Step<S, SE> sandbox_table[] = {
    {S::creating, SE::created, S::leased},   // a sandbox is created for a lease, or
    {S::creating, SE::given_back, S::idle},  // for the warm pool
    {S::creating, SE::destroy_begun, S::destroying},
    {S::creating, SE::vanished, S::lost},  // recovery asks by its key and the provider has none
    {S::idle, SE::claimed, S::leased},
    {S::idle, SE::destroy_begun, S::destroying},
    {S::idle, SE::vanished, S::lost},
    {S::leased, SE::given_back, S::idle},
    {S::leased, SE::destroy_begun, S::destroying},
    {S::leased, SE::vanished, S::lost},
    {S::destroying, SE::destroyed, S::destroyed},
    {S::destroying, SE::vanished, S::destroyed},  // its absence is the goal
};

using T = TemplateState;
using TE = TemplateEvent;
constexpr Step<T, TE> template_table[] = {
    {T::capturing, TE::captured, T::ready},
    {T::capturing, TE::delete_begun, T::deleting},
    {T::ready, TE::delete_begun, T::deleting},
    {T::deleting, TE::deleted, T::deleted},
};

using U = SetupState;
using UE = SetupEvent;
constexpr Step<U, UE> setup_table[] = {
    {U::starting, UE::opened, U::waiting_for_user},
    {U::starting, UE::cancelled, U::cancelled},
    {U::starting, UE::expired, U::timed_out},
    {U::starting, UE::failed, U::failed},
    {U::waiting_for_user, UE::capture_begun, U::capturing},
    {U::waiting_for_user, UE::cancelled, U::cancelled},
    {U::waiting_for_user, UE::expired, U::timed_out},
    {U::waiting_for_user, UE::failed, U::failed},             // its sandbox no longer exists
    {U::capturing, UE::capture_failed, U::waiting_for_user},  // the user's work is not lost
    {U::capturing, UE::promoted, U::promoted},
};

template <class State, class Event>
Result<State> look_up(std::span<const Step<State, Event>> table, State from, Event on) {
  const auto step =
      std::ranges::find_if(table, [&](const auto& s) { return s.from == from && s.on == on; });
  if (step != table.end()) return step->to;
  return fail(Errc::conflict,
              std::string{name_of(on)} + " does not follow " + std::string{name_of(from)});
}

template <class State, class Event>
bool leads_nowhere(std::span<const Step<State, Event>> table, State state) {
  return std::ranges::none_of(table, [&](const auto& s) { return s.from == state; });
}

}  // namespace

std::span<const Step<RunState, RunEvent>> run_steps() {
  return run_table;
}
std::span<const Step<LeaseState, LeaseEvent>> lease_steps() {
  return lease_table;
}
std::span<const Step<SandboxState, SandboxEvent>> sandbox_steps() {
  return sandbox_table;
}
std::span<const Step<TemplateState, TemplateEvent>> template_steps() {
  return template_table;
}
std::span<const Step<SetupState, SetupEvent>> setup_steps() {
  return setup_table;
}

Result<RunState> advance(RunState from, RunEvent on) {
  return look_up(run_steps(), from, on);
}
Result<LeaseState> advance(LeaseState from, LeaseEvent on) {
  return look_up(lease_steps(), from, on);
}
Result<SandboxState> advance(SandboxState from, SandboxEvent on) {
  return look_up(sandbox_steps(), from, on);
}
Result<TemplateState> advance(TemplateState from, TemplateEvent on) {
  return look_up(template_steps(), from, on);
}
Result<SetupState> advance(SetupState from, SetupEvent on) {
  return look_up(setup_steps(), from, on);
}

bool is_final(RunState state) {
  return leads_nowhere(run_steps(), state);
}
bool is_final(LeaseState state) {
  return leads_nowhere(lease_steps(), state);
}
bool is_final(SandboxState state) {
  return leads_nowhere(sandbox_steps(), state);
}
bool is_final(TemplateState state) {
  return leads_nowhere(template_steps(), state);
}
bool is_final(SetupState state) {
  return leads_nowhere(setup_steps(), state);
}

LeaseEvent release_event(RunState run) {
  switch (run) {
    case RunState::cancelled: return LeaseEvent::release_expired;
    case RunState::failed:
    case RunState::timed_out: return LeaseEvent::release_failed;
    case RunState::queued:
    case RunState::starting:
    case RunState::running:
    case RunState::succeeded:
    case RunState::interrupted: break;
  }
  return LeaseEvent::release_succeeded;
}

}  // namespace berth::core
