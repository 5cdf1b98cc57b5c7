#include "engine/templates/setup_sessions.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "core/config/environment_config.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/lease_trace.hpp"
#include "engine/templates/start_from.hpp"
#include "engine/templates/templates.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/places/setup_sessions.hpp"
#include "store/places/templates.hpp"

#include <algorithm>

namespace berth::engine {
namespace {

using core::SetupEvent;
using core::SetupSession;
using core::SetupState;

constexpr std::int64_t usual_ttl_seconds = 3600;
constexpr std::int64_t ttl_seconds_min = 60;
constexpr std::int64_t ttl_seconds_max = 86'400;
// The lease outlives the session by the time that ending it may take.
constexpr std::int64_t lease_slack_ms = 15LL * 60 * 1000;
constexpr std::int64_t step_ms = 10LL * 60 * 1000;  // longer than a step takes

core::Call session_call(const SetupSession& session) {
  return {.who = {.kind = core::CallerKind::system, .company_id = session.company_id}};
}

// Names no lease and no template: the audit trail is read by more people than may use them.
Entry session_entry(const SetupSession& session, std::string_view action) {
  bj::object details{{"setupSessionId", session.id.str()}, {"status", name_of(session.status)}};
  if (session.failure_reason) details["reason"] = *session.failure_reason;
  return {session.company_id, action, "environment", session.environment_id.str(),
          std::move(details)};
}

SetupConnectionPayload our_terminal(const SetupSession& session) {
  return {.lease_id = session.environment_lease_id,
          .websocket_path =
              "/api/environment-leases/" + session.environment_lease_id.str() + "/terminal",
          .expires_at = session.expires_at};
}

SetupConnectionPayload door_of(const SetupSession& session, places::SetupAccess access) {
  return {
      .type = access.type,
      .lease_id = session.environment_lease_id,
      .command = std::move(access.command),
      .token = std::move(access.token),
      .expires_at = std::min(session.expires_at, access.expires_at.value_or(session.expires_at))};
}

bool has_expired(const SetupSession& session, Time now) {
  return !core::is_final(session.status) && session.expires_at <= now;
}

Result<> expect_setup_possible(const core::Environment& environment, const Catalog& catalog) {
  if (environment.driver != core::DriverKind::sandbox) {
    return fail(Errc::unprocessable, "Environment \"" + environment.name +
                                         "\" is not a sandbox: its driver is " +
                                         std::string{name_of(environment.driver)});
  }
  const std::string provider = core::provider_of(environment.config);
  const Capabilities known = catalog.capabilities();
  const auto found = known.sandbox_providers.find(provider);
  const bool can = found != known.sandbox_providers.end() &&
                   found->second.supports_interactive_setup &&
                   found->second.supports_template_capture;
  if (can) return {};
  return fail(Errc::unprocessable,
              "Sandbox provider \"" + provider + "\" does not support interactive setup.",
              "choose an environment whose provider does, for example linux");
}

}  // namespace

Result<SetupSessions::Begun> SetupSessions::intend(store::Session& session, const core::Call& call,
                                                   const core::EnvironmentId& environment,
                                                   const StartSetup& wanted) {
  const Time now = services_.clock.now();
  BERTH_TRY(const auto row,
            store::find_environment(session, core::Reach::of(call.who), environment));
  BERTH_DO(expect_setup_possible(row.value, catalog_));
  const core::SetupSessionId id = core::SetupSessionId::make(services_.random, now);
  const Time until = now + wanted.ttl_seconds.value_or(usual_ttl_seconds) * 1000;
  BERTH_TRY(auto lease,
            leases_.intend(session, core::LeaseId::make(services_.random, now), row.value, nullptr,
                           {.expires_at = until + lease_slack_ms,
                            .from = wanted.template_id,
                            .after = LeaseLifecycle::Terms::After::restart_keeps_it,
                            .setup = id}));
  const SetupSession started{.id = id,
                             .company_id = row.value.company_id,
                             .environment_id = environment,
                             .template_id = lease.value.teardown.template_id,
                             .provider = core::provider_of(row.value.config),
                             .environment_lease_id = lease.value.id,
                             .started_by = std::string{call.who.actor_id()},
                             .node_id = leases_.node(),
                             .expires_at = until,
                             .next_attempt_at = now + step_ms,
                             .created_at = now,
                             .updated_at = now};
  BERTH_DO(store::insert_setup_session(session, started));
  BERTH_DO(record(session, services_, call,
                  session_entry(started, "environment.custom_image_setup.started")));
  BERTH_TRY(Row made, store::find_setup_session(session, core::Reach::everything(), started.id));
  BERTH_TRY(places::SetupRequest request, request_of(session, made.value));
  return Begun{std::move(made), std::move(lease), std::move(request)};
}

Task<SetupView> SetupSessions::start(core::Call call, core::EnvironmentId environment,
                                     StartSetup wanted) {
  const std::int64_t ttl = wanted.ttl_seconds.value_or(usual_ttl_seconds);
  if (ttl < ttl_seconds_min || ttl > ttl_seconds_max) {
    co_return fail(Errc::validation_failed, "/ttlSeconds: must be from 60 to 86400");
  }
  // A retried request gets the same session; only the request that created it opens it.
  std::optional<Begun> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(begun, intend(s, call, environment, wanted));
    return begun->session.value.id.str();
  };
  BERTH_CO_TRY(const std::string named, co_await idempotent_write(services_, call, begin));
  BERTH_CO_TRY(const core::SetupSessionId id, core::SetupSessionId::parse(named));
  if (!begun || begun->session.value.id != id) co_return co_await get(call, id);
  fault_point("setup.intended");
  const auto opened = [&](store::Session& s) -> Result<> {
    BERTH_TRY(Row row, store::find_setup_session(s, core::Reach::everything(), id));
    BERTH_DO(
        store::move_setup_session(s, std::move(row), SetupEvent::opened, services_.clock.now()));
    return {};
  };
  Result<LeaseLifecycle::Held> held = co_await leases_.acquire(
      std::move(begun->lease), {.setup = std::move(begun->request)}, opened);
  fault_point("setup.opened");
  BERTH_CO_TRY(Row row, co_await services_.store.read([&](store::Session& s) {
    return store::find_setup_session(s, core::Reach::everything(), id);
  }));
  if (!held) {
    const Error why = held.error();
    if (why.code != Errc::cancelled) {
      BERTH_CO_DO(co_await end_now(call, std::move(row), SetupEvent::failed, why.message));
    }
    co_return std::unexpected(why);
  }
  BERTH_CO_DO(co_await leases_.keep(held->lease.value, held->facts));
  services_.feed.changed(row.value.company_id);
  co_return co_await shown(std::move(row.value));
}

Task<std::optional<places::SetupAccess>> SetupSessions::access_to(const SetupSession& session) {
  BERTH_CO_TRY(const auto lease, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), session.environment_lease_id);
  }));
  BERTH_CO_TRY(places::Place* const place, leases_.place_of(lease.value));
  places::Logins* const logins = place->abilities().logins;
  if (logins == nullptr) co_return std::nullopt;
  BERTH_CO_TRY(const places::PlaceRef facts, co_await leases_.facts(lease.value));
  co_return co_await logins->setup_access(facts);
}

Task<SetupView> SetupSessions::shown(SetupSession session) {
  if (session.status != SetupState::waiting_for_user) co_return SetupView{std::move(session), {}};
  Result<std::optional<places::SetupAccess>> access = co_await access_to(session);
  if (!access) {
    if (access.error().code == Errc::cancelled) co_return std::unexpected(access.error());
    // The session exists even while its access details are unavailable.
    log::warn("setup.no_access", {{"session", session.id}, {"error", access.error().message}});
    co_return SetupView{std::move(session), {}};
  }
  SetupConnectionPayload payload =
      *access ? door_of(session, **std::move(access)) : our_terminal(session);
  co_return SetupView{std::move(session), std::move(payload)};
}

// The current session; an expired one is ended first.
Task<SetupSessions::Row> SetupSessions::current(const core::Call& call,
                                                const core::SetupSessionId& id) {
  BERTH_CO_TRY(Row row, co_await services_.store.read([&](store::Session& s) {
    return store::find_setup_session(s, core::Reach::of(call.who), id);
  }));
  const bool waits = row.value.status == SetupState::waiting_for_user;
  if (!waits || !has_expired(row.value, services_.clock.now())) co_return row;
  BERTH_CO_DO(
      co_await end_now(session_call(row.value), row, SetupEvent::expired, "its time is over"));
  co_return co_await services_.store.read([&](store::Session& s) {
    return store::find_setup_session(s, core::Reach::of(call.who), id);
  });
}

Task<SetupView> SetupSessions::get(core::Call call, core::SetupSessionId id) {
  BERTH_CO_TRY(Row row, co_await current(call, id));
  co_return co_await shown(std::move(row.value));
}

Result<SetupSessions::Begun> SetupSessions::end(store::Session& session, const core::Call& call,
                                                Row row, SetupEvent event,
                                                std::optional<std::string> reason) {
  BERTH_DO(expect_alive(session, leases_.node()));
  const Time now = services_.clock.now();
  if (reason) row.value.failure_reason = std::move(reason);
  BERTH_TRY(row, store::move_setup_session(session, std::move(row), event, now));
  BERTH_TRY(auto lease, store::find_lease_record(session, core::Reach::everything(),
                                                 row.value.environment_lease_id));
  const bool is_held = lease.value.status == core::LeaseState::active ||
                       lease.value.status == core::LeaseState::acquiring;
  if (is_held) {
    BERTH_TRY(lease, leases_.begin_release(session, std::move(lease),
                                           event == SetupEvent::promoted
                                               ? core::LeaseEvent::release_succeeded
                                               : core::LeaseEvent::release_expired));
  }
  const bool finished = event == SetupEvent::promoted;
  BERTH_DO(record(session, services_, call,
                  session_entry(row.value, finished ? "environment.custom_image_setup.finished"
                                                    : "environment.custom_image_setup.cancelled")));
  return Begun{std::move(row), std::move(lease)};
}

// The row records how the lease ends; if this fails, the sweeper continues.
Task<> SetupSessions::give_back(core::LeaseId id) {
  BERTH_CO_TRY(auto lease, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::everything(), id);
  }));
  if (core::is_final(lease.value.status)) co_return Result<>{};
  const auto settled = co_await leases_.settle(std::move(lease));
  if (!settled && settled.error().code != Errc::cancelled) {
    log::warn("setup.not_given_back", {{"lease", id}, {"error", settled.error().message}});
  }
  co_return Result<>{};
}

Task<SetupSession> SetupSessions::end_now(core::Call call, Row row, SetupEvent event,
                                          std::optional<std::string> reason) {
  BERTH_CO_TRY(Begun ended, co_await services_.store.write([&](store::Session& s) {
    return end(s, call, row, event, reason);
  }));
  fault_point("setup.ended");
  BERTH_CO_DO(co_await give_back(ended.lease.value.id));
  services_.feed.changed(ended.session.value.company_id);
  co_return std::move(ended.session.value);
}

Task<SetupSession> SetupSessions::cancel(core::Call call, core::SetupSessionId id,
                                         CancelSetup wanted) {
  BERTH_CO_TRY(Row row, co_await current(call, id));
  if (core::is_final(row.value.status)) co_return std::move(row.value);
  co_return co_await end_now(call, std::move(row), SetupEvent::cancelled,
                             wanted.reason.value_or("cancelled by an operator"));
}

Result<SetupSessions::Row> SetupSessions::promote(store::Session& session, const core::Call& call,
                                                  Row row, core::Template& made) {
  const Time now = services_.clock.now();
  BERTH_DO(supersede(session, row.value.environment_id, now));
  made.role = core::TemplateRole::active;
  made.environment_id = row.value.environment_id;
  BERTH_TRY(auto environment,
            store::find_environment(session, core::Reach::everything(), row.value.environment_id));
  BERTH_TRY(const bj::object config,
            name_in_config(session, std::move(environment), {.to = made.id}, now));
  if (names_template(core::DriverKind::sandbox, config)) link(made, config);
  BERTH_TRY(Begun ended, end(session, call, std::move(row), SetupEvent::promoted, {}));
  return std::move(ended.session);
}

Result<SetupSessions::Capture> SetupSessions::intend_capture(store::Session& session, Row row,
                                                             const FinishSetup& wanted) {
  const Time now = services_.clock.now();
  if (row.value.status != SetupState::waiting_for_user) {
    return fail(Errc::conflict, "Cannot finish setup session from status \"" +
                                    std::string{name_of(row.value.status)} + "\".");
  }
  BERTH_TRY(auto lease, store::find_lease_record(session, core::Reach::everything(),
                                                 row.value.environment_lease_id));
  BERTH_TRY(const auto environment,
            store::find_environment(session, core::Reach::everything(), row.value.environment_id));
  const std::string name = environment.value.name + " " + to_iso8601(now) + " " +
                           row.value.id.str().substr(row.value.id.str().size() - 6);
  BERTH_TRY(auto made, templates_.intend(session, lease.value, {.name = name}));
  row.value.promoted_template_id = made.value.id;
  row.value.metadata = wanted.metadata;
  row.value.node_id = leases_.node();
  row.value.next_attempt_at = now + step_ms;
  BERTH_TRY(row,
            store::move_setup_session(session, std::move(row), SetupEvent::capture_begun, now));
  return Capture{std::move(row), std::move(made), std::move(lease.value)};
}

Task<SetupFinished> SetupSessions::finished(const core::Call& call,
                                            const core::SetupSessionId& id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<SetupFinished> {
    BERTH_TRY(Row row, store::find_setup_session(s, core::Reach::of(call.who), id));
    if (row.value.status != SetupState::promoted || !row.value.promoted_template_id) {
      return fail(Errc::conflict, "Setup session " + id.str() + " is being captured",
                  "ask again when it is over");
    }
    BERTH_TRY(auto made,
              store::find_template(s, core::Reach::of(call.who), *row.value.promoted_template_id));
    return SetupFinished{std::move(row.value), std::move(made.value), {}};
  });
}

Task<SetupFinished> SetupSessions::finish(core::Call call, core::SetupSessionId id,
                                          FinishSetup wanted) {
  BERTH_CO_TRY(const Row row, co_await current(call, id));
  std::optional<Capture> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(begun, intend_capture(s, row, wanted));
    return begun->made.value.id.str();
  };
  BERTH_CO_TRY(const std::string made_as, co_await idempotent_write(services_, call, begin));
  if (!begun || begun->made.value.id.str() != made_as) co_return co_await finished(call, id);
  const Row capturing = std::move(begun->session);
  const auto also = [&](store::Session& s, core::Template& made) -> Result<> {
    BERTH_DO(promote(s, call, capturing, made));
    return {};
  };
  const Result<TemplateCapture::Row> made =
      co_await templates_.capture(std::move(begun->made), std::move(begun->lease), also);
  if (!made) {
    if (made.error().code != Errc::cancelled) {
      BERTH_CO_DO(co_await take_back(capturing, made.error().message));
    }
    co_return std::unexpected(made.error());
  }
  fault_point("setup.promoted");
  BERTH_CO_DO(co_await give_back(capturing.value.environment_lease_id));
  co_return co_await finished(call, id);
}

Task<SetupSessions::Row> SetupSessions::take_back(Row capturing, std::string why) {
  co_return co_await services_.store.write([&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, leases_.node()));
    Row back = capturing;
    back.value.failure_reason = why;
    back.value.promoted_template_id.reset();
    back.value.node_id = leases_.node();
    return store::move_setup_session(s, std::move(back), SetupEvent::capture_failed,
                                     services_.clock.now());
  });
}

Task<> SetupSessions::look_at(Row row) {
  const core::Call call = session_call(row.value);
  const Time now = services_.clock.now();
  if (row.value.status == SetupState::starting) {
    BERTH_CO_DO(co_await end_now(call, std::move(row), SetupEvent::failed,
                                 "its server ended before the sandbox was there"));
    co_return Result<>{};
  }
  if (row.value.status == SetupState::capturing) {
    // The sweeper also handles the unfinished template; the session waits for the user again.
    BERTH_CO_TRY(row, co_await take_back(row, "its server ended while the sandbox was captured"));
  }
  if (!has_expired(row.value, now)) co_return Result<>{};
  BERTH_CO_DO(co_await end_now(call, std::move(row), SetupEvent::expired, "its time is over"));
  co_return Result<>{};
}

}  // namespace berth::engine
