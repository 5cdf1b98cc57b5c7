#include "engine/upkeep/janitor.hpp"

#include "base/log.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/upkeep/retention.hpp"
#include "store/idempotency.hpp"
#include "store/nodes.hpp"
#include "store/plugins.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace berth::engine {
namespace {

constexpr std::chrono::minutes pause_between_looks{10};
constexpr std::int64_t batch = 500;  // small, so that other writers do not wait
constexpr std::int64_t ms_per_hour = 3'600'000;
// Long enough to investigate an incident.
constexpr std::int64_t node_retention_ms = 7 * 24 * ms_per_hour;
constexpr std::int64_t plugin_log_retention_ms = 7 * 24 * ms_per_hour;
constexpr std::int64_t plugin_log_lines_max = 10'000;  // per plugin

Task<std::int64_t> forget_answers(Services& services) {
  co_return co_await services.store.write([&](store::Session& s) -> Result<std::int64_t> {
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    const Time oldest = services.clock.now() + -settings.answer_retention_hours * ms_per_hour;
    return store::forget_answers(s, oldest, batch);
  });
}

Task<std::int64_t> prune_nodes(Services& services) {
  const Time before = services.clock.now() + -node_retention_ms;
  co_return co_await services.store.write(
      [&](store::Session& s) { return store::prune_nodes(s, before, batch); });
}

Task<std::int64_t> prune_plugin_logs(Services& services) {
  const Time before = services.clock.now() + -plugin_log_retention_ms;
  co_return co_await services.store.write([&](store::Session& s) {
    return store::prune_plugin_logs(s, before, plugin_log_lines_max, batch);
  });
}

void complain(const Result<>& done) {
  if (!done) log::warn("janitor.failed", {{"error", done.error().message}});
}

Task<> until_done(Services& services, Task<std::int64_t> (*chore)(Services&)) {
  std::int64_t done = batch;
  while (done == batch) {
    BERTH_CO_TRY(done, co_await chore(services));
  }
  co_return Result<>{};
}

Task<> until_none(Task<std::int64_t> (*chore)(Services&, const RunLogs&, Quotas&),
                  Services& services, const RunLogs& logs, Quotas& quotas) {
  std::int64_t done = 1;
  while (done > 0) {
    BERTH_CO_TRY(done, co_await chore(services, logs, quotas));
  }
  co_return Result<>{};
}

}  // namespace

Task<> clean_once(Services& services, const RunLogs& logs, Quotas& quotas) {
  for (const auto chore : {forget_answers, prune_nodes, prune_plugin_logs}) {
    complain(co_await until_done(services, chore));
  }
  for (const auto chore : {remove_old_runs, remove_old_logs}) {
    complain(co_await until_none(chore, services, logs, quotas));
  }
  complain(co_await remove_old_events(services));
  complain(co_await forget_lost_logs(services, logs));
  complain(co_await quotas.recount());
  co_return Result<>{};
}

Task<> keep_clean(Services& services, const RunLogs& logs, Quotas& quotas,
                  asio::any_io_executor executor) {
  asio::steady_timer timer{executor};
  complain(co_await quotas.recount());
  while (true) {
    BERTH_CO_DO(co_await clean_once(services, logs, quotas));
    timer.expires_after(pause_between_looks);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::engine
