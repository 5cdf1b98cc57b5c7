// Leases whose acquire was sent but whose response was not recorded: the sandbox may exist, under a
// name unknown to this server.
#include "engine/leases/lease_trace.hpp"
#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"
#include "store/places/setup_sessions.hpp"
#include "store/places/templates.hpp"

namespace berth::engine {
namespace {

using core::AcquireTrace;
using core::LeaseRecord;
using core::Stray;

constexpr std::int64_t setup_trace_ms = 10LL * 60 * 1000;

Stray stray_of(const places::Acquired& acquired) {
  return {.provider_lease_id = acquired.provider_lease_id, .metadata = acquired.metadata};
}

std::string provider_in(const LeaseRecord& lease) {
  return lease.provider.value_or(std::string{name_of(lease.driver)});
}

// The original setup request of the session that the lease was acquired for.
Result<std::optional<places::SetupRequest>> setup_in(store::Session& session,
                                                     const LeaseRecord& lease, Time now) {
  if (!lease.teardown.setup_session_id) return std::nullopt;
  BERTH_TRY(const auto row, store::find_setup_session(session, core::Reach::everything(),
                                                      *lease.teardown.setup_session_id));
  BERTH_TRY(places::SetupRequest wanted, request_of(session, row.value));
  wanted.expires_at = std::max(wanted.expires_at, now + setup_trace_ms);
  return wanted;
}

}  // namespace

bool is_untraceable(const LeaseRecord& lease) {
  const core::Teardown& teardown = lease.teardown;
  return !lease.metadata && teardown.acquire_trace == AcquireTrace::untraceable &&
         teardown.strays.value_or(std::vector<Stray>{}).empty();
}

std::string way_out_of_untraceable(const LeaseRecord& lease) {
  const std::string id = lease.id.str();
  const std::string run = lease.heartbeat_run_id ? lease.heartbeat_run_id->str() : id;
  return "Look in the console of provider \"" + provider_in(lease) +
         "\" for a sandbox that was made between " + to_iso8601(lease.created_at) + " and " +
         to_iso8601(lease.parked_at.value_or(lease.updated_at)) + ", with the run id " + run +
         ". If it is there, name it: berth lease adopt " + id +
         " --sandbox ID. If it is not: berth lease force-resolve " + id + " --reason 'not there'.";
}

Result<places::SetupRequest> request_of(store::Session& session,
                                        const core::SetupSession& started) {
  places::SetupRequest wanted{.session_id = started.id, .expires_at = started.expires_at};
  if (!started.template_id) return wanted;
  BERTH_TRY(const auto from,
            store::find_template(session, core::Reach::everything(), *started.template_id));
  wanted.source_ref = from.value.template_ref;
  wanted.source_kind = from.value.kind;
  return wanted;
}

bool LeaseLifecycle::made_none(Errc code) {
  switch (code) {
    case Errc::plugin_call_failed:
    case Errc::plugin_not_found:
    case Errc::plugin_not_ready:
    case Errc::provider_unavailable:
    case Errc::execution_unsupported:
    case Errc::command_too_large:
    case Errc::overloaded: return true;
    default: return false;
  }
}

Task<LeaseLifecycle::Row> LeaseLifecycle::change_lease(core::LeaseId id, Change change) {
  co_return co_await services_.store.write([&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, node_));
    BERTH_TRY(Row row, store::find_lease_record(s, core::Reach::everything(), id));
    change(row.value);
    return store::update_lease(s, std::move(row), services_.clock.now());
  });
}

Task<LeaseLifecycle::Row> LeaseLifecycle::trace(places::Place& place,
                                                places::AcquireRequest request) {
  const core::LeaseId id = *request.lease.key.lease();
  std::vector<Stray> got;
  std::optional<Error> failure;
  std::optional<AcquireTrace> verdict;
  while (got.size() < 2 && !verdict && !failure) {
    const Result<places::Acquired> answer = co_await place.acquire(request);
    if (!answer) {
      failure = without_secrets(answer.error(), request.lease.secrets);
    } else {
      got.push_back(stray_of(*answer));
      // A resumable sandbox existed all along, so no other one was created.
      if (answer->resumed) verdict = AcquireTrace::found;
    }
  }
  fault_point("acquire.traced");
  if (got.size() == 2) {
    const bool is_same = got[0].provider_lease_id == got[1].provider_lease_id;
    verdict = is_same ? AcquireTrace::found : AcquireTrace::untraceable;
    if (is_same) got.pop_back();
  }
  // Recorded even if this attempt failed, so that the next one finds what it received.
  BERTH_CO_TRY(Row row, co_await change_lease(id, [&](LeaseRecord& lease) {
                 std::vector<Stray> all = lease.teardown.strays.value_or(std::vector<Stray>{});
                 all.insert(all.end(), got.begin(), got.end());
                 if (!all.empty()) lease.teardown.strays = std::move(all);
                 lease.teardown.acquire_trace = verdict;
               }));
  if (!failure) co_return row;
  failure->message = "the answer of provider \"" + provider_in(row.value) +
                     "\" was lost, and asking again failed: " + failure->message;
  co_return std::unexpected(*std::move(failure));
}

Task<places::Acquired> LeaseLifecycle::acquire_again(places::Place& place,
                                                     places::AcquireRequest request) {
  const core::LeaseId id = *request.lease.key.lease();
  BERTH_CO_TRY(const Row seen, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), id);
  }));
  if (seen.value.teardown.acquire_trace == AcquireTrace::none_made) {
    BERTH_CO_DO(co_await change_lease(
        id, [](LeaseRecord& lease) { lease.teardown.acquire_trace.reset(); }));
    co_return co_await place.acquire(request);
  }
  BERTH_CO_TRY(const Row row, co_await trace(place, std::move(request)));
  if (row.value.teardown.acquire_trace != AcquireTrace::found) {
    co_return fail(Errc::lease_acquire_failed,
                   "provider \"" + provider_in(row.value) +
                       "\" was asked for a sandbox before, its answer was lost, and it does not "
                       "name sandboxes by their run: the first one may still be there",
                   "start the run again; berth lease get " + id.str() + " says how to go on");
  }
  // From here on it belongs to this lease.
  BERTH_CO_DO(co_await change_lease(id, [](LeaseRecord& lease) {
    lease.teardown.acquire_trace.reset();
    lease.teardown.strays.reset();
  }));
  const Stray& found = row.value.teardown.strays->back();
  co_return places::Acquired{.provider = provider_in(row.value),
                             .provider_lease_id = found.provider_lease_id,
                             .metadata = found.metadata,
                             .resumed = true};
}

Task<> LeaseLifecycle::destroy_strays(places::Place& place, Row row,
                                      const places::PlaceRef& known) {
  std::vector<Stray> left = row.value.teardown.strays.value_or(std::vector<Stray>{});
  Result<> outcome;
  while (!left.empty() && outcome) {
    const Stray& stray = left.back();
    BERTH_CO_TRY(const auto holder, co_await services_.store.read([&](store::Session& s) {
      return store::holder_of(s, row.value, stray.provider_lease_id.value_or(""));
    }));
    if (!holder) {
      places::PlaceRef named = known.clone();
      named.provider_lease_id = stray.provider_lease_id;
      named.metadata = stray.metadata;
      if (row.value.teardown.plugin_id) {
        named.metadata["pluginId"] = row.value.teardown.plugin_id->str();
      }
      outcome = co_await place.destroy(named);
    }
    if (outcome) left.pop_back();
  }
  BERTH_CO_DO(co_await change_lease(row.value.id, [&](LeaseRecord& lease) {
    lease.teardown.strays.reset();
    if (!left.empty()) lease.teardown.strays = left;
  }));
  if (outcome) co_return outcome;
  co_return std::unexpected(without_secrets(outcome.error(), known.secrets));
}

Task<> LeaseLifecycle::end_unanswered(core::LeaseId id) {
  std::optional<places::SetupRequest> setup;
  BERTH_CO_TRY(Row row, co_await services_.store.read([&](store::Session& s) -> Result<Row> {
    BERTH_TRY(Row found, store::find_lease_record(s, core::Reach::everything(), id));
    BERTH_TRY(setup, setup_in(s, found.value, services_.clock.now()));
    return found;
  }));
  const bool has_name = row.value.provider_lease_id || row.value.teardown.strays;
  if (row.value.teardown.acquire_trace == AcquireTrace::none_made && !has_name) {
    co_return Result<>{};
  }
  BERTH_CO_TRY(places::Place* const place, place_of(row.value));
  BERTH_CO_TRY(const places::PlaceRef known, co_await facts(row.value));
  if (!row.value.teardown.acquire_trace) {
    places::AcquireRequest request{.lease = known.clone(),
                                   .reusable_id = row.value.provider_lease_id,
                                   .setup = std::move(setup)};
    BERTH_CO_TRY(row, co_await trace(*place, std::move(request)));
  }
  // A sandbox that it took over has its provider id on the row.
  if (known.provider_lease_id) {
    const Result<> gone = co_await place->destroy(known);
    if (!gone) co_return std::unexpected(without_secrets(gone.error(), known.secrets));
  }
  BERTH_CO_DO(co_await destroy_strays(*place, row, known));
  if (row.value.teardown.acquire_trace != AcquireTrace::untraceable) co_return Result<>{};
  co_return fail(Errc::lease_acquire_failed, "the answer to its acquire was lost");
}

Result<LeaseLifecycle::Row> LeaseLifecycle::park_unanswered(store::Session& session, Row row) {
  const Time now = services_.clock.now();
  LeaseRecord& lease = row.value;
  std::string where = "an environment that is gone";
  if (lease.environment_id) {
    const auto found =
        store::find_environment(session, core::Reach::everything(), *lease.environment_id);
    if (found) where = "environment \"" + found->value.name + "\"";
  }
  lease.failure_reason =
      "acquire_unanswered: provider \"" + provider_in(lease) +
      "\" was asked for a sandbox of lease " + lease.id.str() +
      (lease.heartbeat_run_id ? " (run " + lease.heartbeat_run_id->str() + ")" : std::string{}) +
      " in " + where + " at " + to_iso8601(lease.created_at) +
      ", and its answer was lost. Asked again, it made others, which are destroyed: it does not "
      "name sandboxes by their run, so the first one may still be there.";
  lease.cleanup_status = core::CleanupStatus::failed;
  if (lease.sandbox_id) {
    BERTH_TRY(auto sandbox,
              store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id));
    if (!core::is_final(sandbox.value.status)) {
      sandbox.value.failure_reason = lease.failure_reason;
      BERTH_DO(store::park_sandbox(session, std::move(sandbox), now));
    }
  }
  log::warn("lease.acquire_unanswered", {{"lease", lease.id}, {"provider", provider_in(lease)}});
  BERTH_TRY(row,
            store::move_lease(session, std::move(row), core::LeaseEvent::teardown_failed, now));
  return store::park_lease(session, std::move(row), now);
}

Result<LeaseLifecycle::Row> LeaseLifecycle::adopt(store::Session& session, Row row,
                                                  std::string provider_lease_id) {
  BERTH_DO(expect_alive(session, node_));
  const Time now = services_.clock.now();
  LeaseRecord& lease = row.value;
  BERTH_TRY(places::Place* const place, place_of(lease));
  const bool waits_for_a_name =
      lease.parked_at && !lease.metadata && !place->abilities().found_by_key;
  if (!waits_for_a_name) {
    return fail(Errc::conflict, "Lease " + lease.id.str() + " does not wait for its sandbox's name",
                "berth lease get " + lease.id.str() + " says what it waits for");
  }
  BERTH_TRY(const auto holder, store::holder_of(session, lease, provider_lease_id));
  if (holder) {
    // The ids of another company's leases are its own.
    const bool is_shown = holder->value.company_id == lease.company_id && holder->value.lease_id;
    return fail(Errc::conflict,
                "Sandbox " + provider_lease_id + " belongs to another lease of Berth" +
                    (is_shown ? ", " + holder->value.lease_id->str() : std::string{}),
                "name the one that no lease knows, or release that lease");
  }
  std::vector<Stray> strays = lease.teardown.strays.value_or(std::vector<Stray>{});
  strays.push_back({.provider_lease_id = std::move(provider_lease_id)});
  lease.teardown.strays = std::move(strays);
  lease.teardown.acquire_trace = AcquireTrace::named;
  if (lease.sandbox_id) {
    BERTH_TRY(auto sandbox,
              store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id));
    sandbox.value.parked_at.reset();
    BERTH_DO(store::update_sandbox(session, std::move(sandbox), now));
  }
  return store::unpark_lease(session, std::move(row), now);
}

}  // namespace berth::engine
