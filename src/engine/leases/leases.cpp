#include "engine/leases/leases.hpp"

#include "base/json/peek.hpp"
#include "engine/journal.hpp"
#include "engine/leases/held_lease.hpp"
#include "engine/leases/lease_trace.hpp"
#include "engine/listing.hpp"
#include "engine/retry.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/companies.hpp"
#include "store/places/sandboxes.hpp"
#include "store/runs.hpp"

#include <boost/asio/this_coro.hpp>

namespace berth::engine {
namespace {

using core::LeaseState;

std::string next_step_of(const core::LeaseRecord& lease) {
  if (core::is_final(lease.status)) return "Nothing: the lease is over.";
  if (lease.parked_at && is_untraceable(lease)) return way_out_of_untraceable(lease);
  if (lease.parked_at) {
    return "Nothing by itself: its cleanup failed " + std::to_string(lease.attempts) +
           " times. Release, destroy or force-resolve it.";
  }
  const std::string when =
      lease.next_attempt_at ? " at " + to_iso8601(*lease.next_attempt_at) : std::string{};
  switch (lease.status) {
    case LeaseState::acquiring: return "It is being acquired.";
    case LeaseState::active:
      if (is_frozen(lease)) {
        return "It is frozen; 'berth sandbox thaw " + lease.id.str() + "' lets it go on.";
      }
      if (!lease.heartbeat_run_id) return "It is held for a user, and given back" + when + ".";
      return "Its run works with it; it ends with the run.";
    case LeaseState::releasing: return "It is being given back.";
    case LeaseState::retained:
      return "It is kept for inspection, and given back" +
             (lease.expires_at ? " at " + to_iso8601(*lease.expires_at) : std::string{}) + ".";
    case LeaseState::pending_cleanup: return "Its cleanup is tried again" + when + ".";
    case LeaseState::released:
    case LeaseState::expired:
    case LeaseState::failed: break;
  }
  return {};
}

std::string next_step_of(const core::Sandbox& sandbox) {
  using core::SandboxState;
  const std::string removal = "'berth sandbox rm " + sandbox.id.str() + "'";
  switch (sandbox.status) {
    case SandboxState::creating: return "It is being made.";
    case SandboxState::leased: return "A lease holds it and shows what happens next.";
    case SandboxState::idle:
      return "It is kept for the next run" +
             (sandbox.expires_at ? " until " + to_iso8601(*sandbox.expires_at) : std::string{}) +
             "; " + removal + " removes it now.";
    case SandboxState::destroying:
      if (sandbox.parked_at) {
        return "Nothing by itself: its removal failed " + std::to_string(sandbox.attempts) +
               " times. " + removal + " tries again.";
      }
      return "It is being removed.";
    case SandboxState::destroyed:
    case SandboxState::lost: break;
  }
  return "Nothing: the sandbox is gone.";
}

std::optional<bj::object> told(const std::optional<bj::object>& metadata, std::string_view what) {
  return peek<bj::object>(metadata, what);
}

Entry status_entry(const core::LeaseRecord& lease, std::string_view action) {
  return {lease.company_id,
          action,
          "environment_lease",
          lease.id.str(),
          {{"status", name_of(lease.status)}}};
}

SandboxView shown(core::Sandbox sandbox) {
  std::string next_step = next_step_of(sandbox);
  return {.id = sandbox.id,
          .company_id = sandbox.company_id,
          .environment_id = sandbox.environment_id,
          .agent_id = sandbox.agent_id,
          .lease_id = sandbox.lease_id,
          .node_id = sandbox.node_id,
          .provider = std::move(sandbox.provider),
          .provider_lease_id = std::move(sandbox.provider_lease_id),
          .status = sandbox.status,
          .failure_reason = std::move(sandbox.failure_reason),
          .attempts = sandbox.attempts,
          .next_attempt_at = sandbox.next_attempt_at,
          .parked_at = sandbox.parked_at,
          .expires_at = sandbox.expires_at,
          .last_used_at = sandbox.last_used_at,
          .created_at = sandbox.created_at,
          .next_step = std::move(next_step),
          .isolation = told(sandbox.metadata, "isolation"),
          .metadata = std::move(sandbox.metadata)};
}

// What an ended lease has left behind, if that is an idle sandbox.
std::optional<std::string> word_of_kept(store::Session& session, const core::LeaseRecord& lease) {
  if (!core::is_final(lease.status) || !lease.sandbox_id) return std::nullopt;
  const auto left = store::find_sandbox(session, core::Reach::everything(), *lease.sandbox_id);
  if (!left || left->value.status != core::SandboxState::idle) return std::nullopt;
  return "Nothing: the lease is over. Of its sandbox " + left->value.id.str() + ": " +
         next_step_of(left->value);
}

}  // namespace

LeaseView view_of(core::LeaseRecord lease) {
  std::string next_step = next_step_of(lease);
  return {static_cast<const core::Lease&>(lease),
          lease.driver,
          lease.node_id,
          lease.sandbox_id,
          lease.attempts,
          lease.next_attempt_at,
          lease.parked_at,
          std::move(next_step),
          told(lease.metadata, "isolation"),
          told(lease.metadata, "usage")};
}

Task<core::Listing<LeaseView>> Leases::list(core::Call call, core::CompanyId company,
                                            store::LeaseFilter filter, core::PageRequest page) {
  using Rows = core::Page<core::LeaseRecord>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::find_company(s, core::Reach::of(call.who), company));
    return store::list_company_leases(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows), view_of);
}

Task<LeaseView> Leases::get(core::Call call, core::LeaseId id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<LeaseView> {
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::of(call.who), id));
    std::optional<std::string> kept = word_of_kept(s, row.value);
    LeaseView view = view_of(std::move(row.value));
    if (kept) view.next_step = *std::move(kept);
    BERTH_TRY(view.server, server_of(s, view.node_id));
    return view;
  });
}

Task<core::Listing<SandboxView>> Leases::sandboxes(core::Call call, core::CompanyId company,
                                                   store::SandboxFilter filter,
                                                   core::PageRequest page) {
  using Rows = core::Page<core::Sandbox>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::list_sandboxes(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows), shown);
}

Task<SandboxView> Leases::sandbox(core::Call call, core::SandboxId id) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<SandboxView> {
    BERTH_TRY(auto row, store::find_sandbox(s, core::Reach::of(call.who), id));
    SandboxView view = shown(std::move(row.value));
    BERTH_TRY(view.server, server_of(s, view.node_id));
    return view;
  });
}

Task<SandboxView> Leases::remove_sandbox(core::Call call, core::SandboxId id) {
  using Row = core::Stored<core::Sandbox>;
  const auto begin = [&](store::Session& s) -> Result<Row> {
    BERTH_DO(expect_alive(s, work_.node()));
    BERTH_TRY(Row row, store::find_sandbox(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return row;
    if (row.value.lease_id) {
      const std::string lease = row.value.lease_id->str();
      return fail(Errc::conflict, "Sandbox " + id.str() + " is held by lease " + lease,
                  "end the lease with it: berth lease destroy " + lease);
    }
    BERTH_DO(record(s, services_, call,
                    {row.value.company_id,
                     "environment.sandbox_destroy_asked",
                     "sandbox",
                     id.str(),
                     {{"status", name_of(row.value.status)}}}));
    if (!row.value.parked_at) return row;
    return store::unpark_sandbox(s, std::move(row), services_.clock.now());
  };
  BERTH_CO_TRY(Row row, co_await services_.store.write(begin));
  if (!core::is_final(row.value.status)) {
    BERTH_CO_DO(co_await work_.settle(row));
  }
  services_.feed.changed(row.value.company_id);
  co_return co_await sandbox(call, id);
}

Task<LeaseView> Leases::end(core::Call call, core::LeaseId id, std::string_view action,
                            core::LeaseEvent how) {
  const auto begin = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
    BERTH_DO(expect_alive(s, work_.node()));
    const Time now = services_.clock.now();
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return row;
    if (row.value.heartbeat_run_id) {
      const auto run = store::find_run(s, core::Reach::everything(), *row.value.heartbeat_run_id);
      if (run && !core::is_final(run->value.status)) {
        return fail(Errc::conflict, "Run " + run->value.id.str() + " works with lease " + id.str(),
                    "cancel the run: berth run cancel " + run->value.id.str());
      }
    }
    BERTH_DO(record(s, services_, call, status_entry(row.value, action)));
    if (row.value.parked_at) {
      BERTH_TRY(row, store::unpark_lease(s, std::move(row), now));
    }
    const bool is_held =
        row.value.status == LeaseState::active || row.value.status == LeaseState::retained;
    if (!is_held) return row;
    return work_.begin_release(s, std::move(row), how);
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(begin));
  if (!core::is_final(row.value.status)) {
    BERTH_CO_TRY(row, co_await work_.settle(std::move(row)));
  }
  BERTH_CO_TRY(row, co_await wait_for_its_server(std::move(row)));
  services_.feed.changed(row.value.company_id);
  co_return view_of(std::move(row.value));
}

// The server that holds it checks every second.
Task<Leases::LeaseRow> Leases::wait_for_its_server(LeaseRow row) {
  constexpr int looks_max = 25;
  constexpr std::chrono::milliseconds pause{200};
  const core::LeaseId id = row.value.id;
  for (int look = 0; look < looks_max; ++look) {
    const bool is_left = row.value.status == LeaseState::releasing && !work_.reaches(row.value);
    if (!is_left) break;
    BERTH_CO_DO(co_await pause_for(co_await asio::this_coro::executor, pause));
    BERTH_CO_TRY(row, co_await services_.store.read([&](store::Session& s) {
      return store::find_lease_record(s, core::Reach::everything(), id);
    }));
  }
  co_return row;
}

Task<LeaseView> Leases::release(core::Call call, core::LeaseId id) {
  co_return co_await end(call, id, "environment.lease_release_asked",
                         core::LeaseEvent::release_succeeded);
}

Task<LeaseView> Leases::destroy(core::Call call, core::LeaseId id) {
  BERTH_CO_TRY(LeaseView ended, co_await end(call, id, "environment.lease_destroy_asked",
                                             core::LeaseEvent::release_expired));
  BERTH_CO_DO(co_await destroy_idle_sandbox(call, ended));
  co_return ended;
}

// A released lease may have left an idle sandbox.
Task<> Leases::destroy_idle_sandbox(core::Call call, const LeaseView& ended) {
  if (!ended.sandbox_id) co_return Result<>{};
  using Found = std::optional<core::Stored<core::Sandbox>>;
  const auto find = [&](store::Session& s) -> Result<Found> {
    BERTH_TRY(auto row, store::find_sandbox(s, core::Reach::of(call.who), *ended.sandbox_id));
    if (row.value.status != core::SandboxState::idle) return Found{};
    BERTH_DO(record(s, services_, call,
                    {ended.company_id,
                     "environment.sandbox_destroy_asked",
                     "environment_lease",
                     ended.id.str(),
                     {{"sandboxId", row.value.id.str()}}}));
    return Found{std::move(row)};
  };
  BERTH_CO_TRY(Found idle, co_await services_.store.write(find));
  if (!idle) co_return Result<>{};
  co_return co_await work_.settle(*std::move(idle));
}

Task<LeaseView> Leases::adopt(core::Call call, core::LeaseId id, AdoptSandbox wanted) {
  if (wanted.provider_lease_id.empty()) {
    co_return fail(Errc::validation_failed, "/providerLeaseId: must not be empty");
  }
  const auto begin = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return row;
    BERTH_TRY(row, work_.adopt(s, std::move(row), wanted.provider_lease_id));
    Entry entry = status_entry(row.value, "environment.lease_sandbox_named");
    entry.details["providerLeaseId"] = wanted.provider_lease_id;
    BERTH_DO(record(s, services_, call, std::move(entry)));
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(begin));
  if (!core::is_final(row.value.status)) {
    BERTH_CO_TRY(row, co_await work_.settle(std::move(row)));
  }
  services_.feed.changed(row.value.company_id);
  co_return view_of(std::move(row.value));
}

Task<LeaseView> Leases::force_resolve(core::Call call, core::LeaseId id, ForceResolve wanted) {
  const auto work = [&](store::Session& s) -> Result<core::Stored<core::LeaseRecord>> {
    BERTH_TRY(auto row, store::find_lease_record(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return row;
    if (row.value.heartbeat_run_id) {
      const auto run = store::find_run(s, core::Reach::everything(), *row.value.heartbeat_run_id);
      if (run && !core::is_final(run->value.status)) {
        return fail(Errc::conflict, "Run " + run->value.id.str() + " works with lease " + id.str(),
                    "cancel the run: berth run cancel " + run->value.id.str());
      }
    }
    BERTH_TRY(row, work_.force_end(s, std::move(row), wanted.reason));
    Entry entry = status_entry(row.value, "environment.lease_force_resolved");
    entry.details["reason"] = wanted.reason;
    BERTH_DO(record(s, services_, call, std::move(entry)));
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(work));
  services_.feed.changed(row.value.company_id);
  co_return view_of(std::move(row.value));
}

}  // namespace berth::engine
