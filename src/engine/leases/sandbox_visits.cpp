// A kept sandbox that a user works in between two runs.
#include "engine/environments/allowed_places.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/leases/lease_lifecycle.hpp"
#include "engine/leases/leases.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/agent_homes.hpp"
#include "store/places/environments.hpp"
#include "store/places/sandboxes.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t visit_ttl_s = 15LL * 60;
constexpr std::int64_t visit_ttl_s_max = 24LL * 3600;

Result<> expect_kept(store::Session& session, const core::Sandbox& sandbox, bool reaches) {
  const std::string name = "Sandbox " + sandbox.id.str();
  if (sandbox.lease_id) {
    return fail(Errc::conflict, name + " is held by lease " + sandbox.lease_id->str(),
                "use that lease, or wait until it is released");
  }
  if (sandbox.status != core::SandboxState::idle || sandbox.parked_at) {
    return fail(
        Errc::conflict,
        name + " is not kept for another run: it is " + std::string{name_of(sandbox.status)},
        "'berth sandbox ls' shows the sandboxes that are kept");
  }
  if (reaches) return {};
  BERTH_TRY(const auto server, server_of(session, sandbox.node_id));
  return fail(Errc::conflict, name + " is on another server" + (server ? ": " + server->name : ""),
              "ask that server");
}

}  // namespace

Result<core::LeaseId> Leases::intend_visit(store::Session& s, const core::Call& call,
                                           const core::SandboxId& id, std::int64_t ttl_s) {
  const Time now = services_.clock.now();
  BERTH_TRY(const auto row, store::find_sandbox(s, core::Reach::of(call.who), id));
  const core::Sandbox& sandbox = row.value;
  BERTH_DO(expect_kept(s, sandbox, work_.reaches(sandbox)));
  if (!sandbox.environment_id) {
    return fail(Errc::conflict, "The environment of sandbox " + id.str() + " was deleted");
  }
  const auto reach = core::Reach::only(sandbox.company_id);
  BERTH_TRY(const auto place, store::find_environment(s, reach, *sandbox.environment_id));
  LeaseLifecycle::Terms terms{.expires_at = now + ttl_s * 1000,
                              .kept = LeaseLifecycle::Terms::Kept{id, sandbox.agent_id}};
  // A run's fingerprint includes the home, but the sandbox's row does not record which one.
  std::vector<core::AgentHome> homes;
  if (sandbox.agent_id) {
    BERTH_TRY(homes, store::homes_of_agent(s, *sandbox.agent_id, sandbox.environment_id));
  }
  const core::LeaseId lease_id = core::LeaseId::make(services_.random, now);
  Result<LeaseLifecycle::Row> lease = work_.intend(s, lease_id, place.value, nullptr, terms);
  for (const core::AgentHome& home : homes) {
    if (lease || lease.error().code != Errc::conflict) break;
    terms.home = home.id;
    lease = work_.intend(s, lease_id, place.value, nullptr, terms);
  }
  if (!lease) return std::unexpected(std::move(lease).error());
  BERTH_DO(record(s, services_, call,
                  {sandbox.company_id,
                   "environment.sandbox_visited",
                   "sandbox",
                   id.str(),
                   {{"leaseId", lease_id.str()}, {"ttlSeconds", ttl_s}}}));
  return lease_id;
}

Task<LeaseView> Leases::visit(core::Call call, core::SandboxId id, VisitSandbox wanted) {
  const std::int64_t ttl_s = wanted.ttl_seconds.value_or(visit_ttl_s);
  if (ttl_s < 1 || ttl_s > visit_ttl_s_max) {
    co_return fail(Errc::unprocessable,
                   "/ttlSeconds: must be from 1 to " + std::to_string(visit_ttl_s_max));
  }
  // A retried request gets the same lease; only the request that created it acquires it.
  std::optional<core::LeaseId> begun;
  const auto begin = [&](store::Session& s) -> Result<std::string> {
    BERTH_TRY(begun, intend_visit(s, call, id, ttl_s));
    return begun->str();
  };
  const auto is_given_up = [&](store::Session& s, const std::string& before) -> Result<bool> {
    BERTH_TRY(const core::LeaseId known, core::LeaseId::parse(before));
    BERTH_TRY(const auto row, store::find_lease_record(s, core::Reach::of(call.who), known));
    return core::is_final(row.value.status);
  };
  BERTH_CO_TRY(const std::string named,
               co_await idempotent_write(services_, call, begin, is_given_up));
  BERTH_CO_TRY(const core::LeaseId lease_id, core::LeaseId::parse(named));
  BERTH_CO_TRY(LeaseLifecycle::Row row, co_await services_.store.read([&](store::Session& s) {
    return store::find_lease_record(s, core::Reach::of(call.who), lease_id);
  }));
  if (begun != lease_id) co_return view_of(std::move(row.value));
  co_return co_await enter(std::move(call), std::move(row), id);
}

Task<LeaseView> Leases::enter(core::Call call, LeaseRow row, core::SandboxId id) {
  const core::LeaseId lease_id = row.value.id;
  Result<LeaseLifecycle::Held> held = co_await work_.acquire(std::move(row), {}, {});
  if (held && held->resumed) {
    // No run renews the place.
    BERTH_CO_DO(co_await work_.keep(held->lease.value, held->facts));
    services_.feed.changed(held->lease.value.company_id);
    co_return view_of(std::move(held->lease.value));
  }
  if (!held && held.error().code == Errc::cancelled) co_return std::unexpected(held.error());
  // A new sandbox instead of the requested one is of no use to the caller.
  BERTH_CO_DO(co_await end(call, lease_id, "environment.lease_destroy_asked",
                           core::LeaseEvent::release_expired));
  if (!held) co_return std::unexpected(std::move(held).error());
  co_return fail(Errc::sandbox_not_found,
                 "Sandbox " + id.str() + " is gone: its provider could not resume it",
                 "start a new run in its environment");
}

}  // namespace berth::engine
