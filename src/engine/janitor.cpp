#include "engine/janitor.hpp"

#include "base/log.hpp"
#include "engine/settings.hpp"
#include "store/idempotency.hpp"
#include "store/nodes.hpp"
#include "store/plugins.hpp"
#include "store/runs.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <span>

namespace berth::engine {
namespace {

constexpr std::chrono::minutes pause{10};
constexpr std::int64_t batch = 500;  // small, so that other writers do not wait
constexpr std::int64_t ms_per_hour = 3'600'000;
// Long enough to look at after an incident.
constexpr std::int64_t node_retention_ms = 7 * 24 * ms_per_hour;
constexpr std::int64_t plugin_log_retention_ms = 7 * 24 * ms_per_hour;
constexpr std::int64_t plugin_log_lines_max = 10'000;  // of each plugin

Task<std::int64_t> forget_answers(Means& means) {
  co_return co_await means.store.write([&](store::Session& s) -> Result<std::int64_t> {
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    const Time oldest = means.clock.now() + -settings.answer_retention_hours * ms_per_hour;
    return store::forget_answers(s, oldest, batch);
  });
}

Task<std::int64_t> prune_nodes(Means& means) {
  const Time before = means.clock.now() + -node_retention_ms;
  co_return co_await means.store.write(
      [&](store::Session& s) { return store::prune_nodes(s, before, batch); });
}

Task<std::int64_t> prune_plugin_logs(Means& means) {
  const Time before = means.clock.now() + -plugin_log_retention_ms;
  co_return co_await means.store.write([&](store::Session& s) {
    return store::prune_plugin_logs(s, before, plugin_log_lines_max, batch);
  });
}

// A run is recorded before it has a log, so a log that is found has a run, or had one.
Task<> forget_logs(Means& means, const RunLogs& logs) {
  BERTH_CO_TRY(const std::vector<core::RunId> kept, logs.list());
  for (std::size_t from = 0; from < kept.size(); from += batch) {
    const std::size_t count = std::min<std::size_t>(batch, kept.size() - from);
    const std::span<const core::RunId> some = std::span{kept}.subspan(from, count);
    const auto orphans = [some](store::Session& s) -> Result<std::vector<core::RunId>> {
      std::vector<core::RunId> gone;
      for (const core::RunId& id : some) {
        const auto run = store::find_run(s, core::Reach::everything(), id);
        if (run) continue;
        if (run.error().code != Errc::run_not_found) return std::unexpected(run.error());
        gone.push_back(id);
      }
      return gone;
    };
    BERTH_CO_TRY(const std::vector<core::RunId> gone, co_await means.store.read(orphans));
    for (const core::RunId& id : gone) {
      BERTH_CO_DO(logs.remove(id));
    }
  }
  co_return Result<>{};
}

void complain(const Result<>& done) {
  if (!done) log::warn("janitor.failed", {{"error", done.error().message}});
}

Task<> until_done(Means& means, Task<std::int64_t> (*chore)(Means&)) {
  std::int64_t done = batch;
  while (done == batch) {
    BERTH_CO_TRY(done, co_await chore(means));
  }
  co_return Result<>{};
}

}  // namespace

Task<> keep_clean(Means& means, const RunLogs& logs, asio::any_io_executor executor) {
  asio::steady_timer timer{executor};
  while (true) {
    for (const auto chore : {forget_answers, prune_nodes, prune_plugin_logs}) {
      complain(co_await until_done(means, chore));
    }
    complain(co_await forget_logs(means, logs));
    timer.expires_after(pause);
    const auto [stopped] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    if (stopped) co_return Result<>{};
  }
}

}  // namespace berth::engine
