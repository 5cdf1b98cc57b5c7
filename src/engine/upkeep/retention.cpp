#include "engine/upkeep/retention.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "store/retention.hpp"
#include "store/runs.hpp"

#include <algorithm>
#include <span>

namespace berth::engine {
namespace {

constexpr std::int64_t runs_at_a_time = 100;  // with all their events
constexpr std::int64_t rows_removed_at_a_time = 500;
constexpr std::int64_t ms_per_day = 24LL * 3'600'000;

using Expired = std::vector<store::ExpiredRun>;

// Absent: kept forever.
std::optional<Time> oldest_kept(const Services& services, std::int64_t days) {
  if (days == 0) return std::nullopt;
  return services.clock.now() + -days * ms_per_day;
}

Result<> remove_files(const RunLogs& logs, Quotas& quotas, const Expired& removed) {
  for (const store::ExpiredRun& run : removed) {
    BERTH_DO(logs.remove(run.id));
    quotas.add(run.company_id, -run.bytes);
  }
  return {};
}

Result<std::vector<core::RunId>> without_log(store::Session& session,
                                             std::span<const core::RunId> some) {
  std::vector<core::RunId> gone;
  for (const core::RunId& id : some) {
    const auto run = store::find_run(session, core::Reach::everything(), id);
    if (!run && run.error().code != Errc::run_not_found) return std::unexpected(run.error());
    if (!run || run->value.log_removed_at) gone.push_back(id);
  }
  return gone;
}

}  // namespace

Task<std::int64_t> remove_old_runs(Services& services, const RunLogs& logs, Quotas& quotas) {
  const auto work = [&](store::Session& s) -> Result<Expired> {
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    const auto before = oldest_kept(services, settings.run_retention_days);
    if (!before) return Expired{};
    BERTH_TRY(Expired old, store::expired_runs(s, *before, runs_at_a_time));
    for (const store::ExpiredRun& run : old) BERTH_DO(store::delete_run(s, run.id));
    return old;
  };
  BERTH_CO_TRY(const Expired removed, co_await services.store.write(work));
  if (removed.empty()) co_return 0;
  fault_point("retention.runs_deleted");
  log::info("retention.runs_deleted", {{"runs", removed.size()}});
  BERTH_CO_DO(remove_files(logs, quotas, removed));
  co_return std::ssize(removed);
}

Task<std::int64_t> remove_old_logs(Services& services, const RunLogs& logs, Quotas& quotas) {
  const auto work = [&](store::Session& s) -> Result<Expired> {
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    const auto before = oldest_kept(services, settings.log_retention_days);
    if (!before) return Expired{};
    BERTH_TRY(Expired old, store::expired_logs(s, *before, rows_removed_at_a_time));
    const Time now = services.clock.now();
    for (const store::ExpiredRun& run : old) BERTH_DO(store::mark_log_removed(s, run.id, now));
    return old;
  };
  BERTH_CO_TRY(const Expired removed, co_await services.store.write(work));
  if (removed.empty()) co_return 0;
  fault_point("retention.logs_marked");
  log::info("retention.logs_removed", {{"runs", removed.size()}});
  BERTH_CO_DO(remove_files(logs, quotas, removed));
  co_return std::ssize(removed);
}

Task<> remove_old_events(Services& services) {
  store::EventSweep sweep;
  while (!sweep.complete) {
    const auto work = [&](store::Session& s) -> Result<store::EventSweep> {
      BERTH_TRY(const InstanceSettings settings, read_settings(s));
      const auto before = oldest_kept(services, settings.event_retention_days);
      if (!before) return store::EventSweep{.complete = true};
      return store::forget_run_events(s, sweep.last, *before, rows_removed_at_a_time);
    };
    BERTH_CO_TRY(sweep, co_await services.store.write(work));
  }
  co_return Result<>{};
}

// A run is recorded before it has a log, so every log has a run, or had one.
Task<> forget_lost_logs(Services& services, const RunLogs& logs) {
  BERTH_CO_TRY(const std::vector<core::RunId> kept, logs.list());
  for (std::size_t from = 0; from < kept.size(); from += rows_removed_at_a_time) {
    const std::size_t count = std::min<std::size_t>(rows_removed_at_a_time, kept.size() - from);
    const std::span<const core::RunId> some = std::span{kept}.subspan(from, count);
    BERTH_CO_TRY(
        const std::vector<core::RunId> gone,
        co_await services.store.read([some](store::Session& s) { return without_log(s, some); }));
    for (const core::RunId& id : gone) {
      BERTH_CO_DO(logs.remove(id));
    }
  }
  co_return Result<>{};
}

}  // namespace berth::engine
