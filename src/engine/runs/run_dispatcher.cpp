#include "engine/runs/run_dispatcher.hpp"

#include "base/fault_point.hpp"
#include "base/log.hpp"
#include "engine/retry.hpp"
#include "engine/runs/run_notes.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/nodes.hpp"
#include "store/places/leases.hpp"
#include "store/runs.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace berth::engine {
namespace {

// The longest time until runs queued by another server are found.
constexpr std::chrono::milliseconds dispatch_interval{2000};
constexpr std::chrono::milliseconds race_pause{5};
constexpr std::int64_t orphans_at_a_time = 50;

}  // namespace

void RunDispatcher::reachable_as(std::string api_url, std::vector<std::string> candidates) {
  tools_.options.api_url = std::move(api_url);
  tools_.options.api_candidates = std::move(candidates);
}

void RunDispatcher::expect_new() {
  // On PostgreSQL, the claim would use its own connection and look before the run is visible.
  if (tools_.services.store.engine() != store::EngineKind::sqlite) return;
  has_queued_ = true;
  wake();
}

void RunDispatcher::take_new(const core::RunId& run) {
  queued_.insert(run);
  wake();
}

void RunDispatcher::poke() {
  must_look_ = true;
  wake();
}

void RunDispatcher::wake() {
  has_news_ = true;
  news_.cancel();
}

Task<> RunDispatcher::dispatch() {
  int races_lost = 0;  // in a row
  while (true) {
    has_news_ = false;
    std::chrono::milliseconds rest = dispatch_interval;
    const Result<> taken = co_await take_queued();
    if (!taken && taken.error().code == Errc::cancelled) co_return Result<>{};
    // Another server was faster with one of them. The remaining runs are checked again soon.
    if (!taken) must_look_ = true;
    const bool lost_race = !taken && taken.error().code == Errc::conflict;
    races_lost = lost_race ? races_lost + 1 : 0;
    if (lost_race) rest = std::min(rest, race_pause * (1 << std::min(races_lost, 8)));
    if (!taken && !lost_race) {
      log::warn("run.dispatch_failed", {{"error", taken.error().message}});
    }
    if (has_news_) continue;
    news_.expires_after(rest);
    const auto [error] = co_await news_.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error && !has_news_) co_return Result<>{};
    if (!error) must_look_ = true;
  }
}

Task<> RunDispatcher::take_queued() {
  if (is_unsure_) BERTH_CO_DO(co_await take_unanswered());
  const QueueLimits room = limits();
  if (room.running >= room.limit) co_return Result<>{};
  std::erase_if(queued_, [this](const core::RunId& run) { return live_.contains(run); });
  const bool has_new = !std::exchange(queued_, {}).empty();
  const bool must_look = std::exchange(must_look_, false);
  if (!std::exchange(has_queued_, false) && !has_new) {
    if (!must_look) co_return Result<>{};
    // Most checks find nothing, and a read need not wait for writers.
    BERTH_CO_TRY(const bool is_waiting, co_await tools_.services.store.read([](store::Session& s) {
      return store::has_queued_run(s);
    }));
    if (!is_waiting) co_return Result<>{};
  }
  const auto claim = [&](store::Session& s) {
    return claim_queued(s, tools_.services, catalog_, tools_.leases, room);
  };
  Result<std::vector<ClaimedRun>> claimed = co_await tools_.services.store.write(claim);
  if (!claimed) {
    is_unsure_ = is_unsure_ || is_outage(claimed.error().code);
    co_return std::unexpected(std::move(claimed).error());
  }
  fault_point("claim.recorded");
  for (ClaimedRun& run : *claimed) start(std::move(run));
  co_return Result<>{};
}

Task<> RunDispatcher::take_unanswered() {
  const auto limit = static_cast<std::int64_t>(live_.size() + adopting_.size()) +
                     tools_.options.runs_max + orphans_at_a_time;
  BERTH_CO_TRY(const auto runs, co_await tools_.services.store.read([&](store::Session& s) {
    return store::runs_of_node(s, tools_.leases.node(), limit);
  }));
  is_unsure_ = false;
  for (const auto& run : runs) {
    const core::RunId& id = run.value.id;
    if (live_.contains(id) || adopting_.contains(id)) continue;
    // It may have ended since; while no job here works on it, its state does not change.
    BERTH_CO_TRY(ClaimedRun rows, co_await look_again(id));
    if (core::is_final(rows.run.value.status)) continue;
    log::info("run.unanswered", {{"run", id}});
    start(std::move(rows));
  }
  co_return Result<>{};
}

void RunDispatcher::start(ClaimedRun claimed) {
  auto work = std::make_shared<RunJob>(tools_, std::move(claimed));
  tools_.services.feed.changed(work->company());
  tools_.services.feed.changed(work->id());
  live_.insert_or_assign(work->id(), work);
  work_.start("run " + work->id().str(), carry(work));
}

Task<> RunDispatcher::carry(std::shared_ptr<RunJob> work) {
  const core::RunId id = work->id();
  for (int tries = 0;; ++tries) {
    Result<> done = co_await work->carry();
    const bool may_go_on =
        !done && done.error().code != Errc::cancelled && done.error().code != Errc::node_fenced;
    if (!may_go_on) break;
    // No other server takes care of it while this one lives.
    log::error("run.stalled", {{"run", id}, {"error", done.error().message}});
    if (!co_await pause_for(tools_.executor, pause_after(tries))) break;
    Result<ClaimedRun> rows = co_await look_again(id);
    if (!rows) continue;
    if (core::is_final(rows->run.value.status)) break;
    work = std::make_shared<RunJob>(tools_, *std::move(rows));
    live_.insert_or_assign(id, work);
  }
  if (core::is_final(work->status())) ++ended_[work->status()];
  live_.erase(id);
  poke();
  co_return Result<>{};
}

Task<ClaimedRun> RunDispatcher::look_again(core::RunId id) {
  co_return co_await tools_.services.store.read([&](store::Session& s) -> Result<ClaimedRun> {
    BERTH_TRY(auto run, store::find_run(s, core::Reach::everything(), id));
    BERTH_TRY(auto lease,
              store::find_lease_record(s, core::Reach::everything(), *run.value.lease_id));
    return ClaimedRun{std::move(run), std::move(lease)};
  });
}

Task<> RunDispatcher::adopt_orphans() {
  BERTH_CO_TRY(auto orphans, co_await tools_.services.store.read([](store::Session& s) {
    return store::orphaned_runs(s, orphans_at_a_time);
  }));
  for (auto& run : orphans) {
    if (live_.contains(run.value.id)) continue;
    const core::RunId id = run.value.id;
    adopting_.insert(id);
    const Result<> adopted = co_await adopt(std::move(run));
    adopting_.erase(id);
    if (!adopted && is_outage(adopted.error().code)) {
      is_unsure_ = true;
      poke();
    }
    if (!adopted && adopted.error().code != Errc::conflict) {
      log::warn("run.adopt_failed", {{"run", id}, {"error", adopted.error().message}});
    }
  }
  co_return Result<>{};
}

Task<> RunDispatcher::adopt(core::Stored<core::Run> orphan) {
  const Time now = tools_.services.clock.now();
  const core::NodeId node = tools_.leases.node();
  bool must_wait = false;
  bool is_out_of_reach = false;
  const auto take = [&](store::Session& s) -> Result<std::optional<ClaimedRun>> {
    BERTH_DO(expect_alive(s, node));
    BERTH_TRY(auto run, store::find_run(s, core::Reach::everything(), orphan.value.id));
    if (core::is_final(run.value.status) || run.value.node_id != orphan.value.node_id) {
      return std::nullopt;
    }
    BERTH_TRY(auto lease,
              store::find_lease_record(s, core::Reach::everything(), *run.value.lease_id));
    // A keeper on another machine cannot be reached from here. It ends its command by itself when
    // it is not renewed, and then the run is over.
    is_out_of_reach = !tools_.leases.reaches(lease.value);
    if (is_out_of_reach) {
      BERTH_TRY(const auto holder, store::find_node(s, *run.value.node_id));
      must_wait = holder && holder->fenced_at.value_or(now) + tools_.options.hold_ms > now;
      return std::nullopt;
    }
    run.value.node_id = node;
    lease.value.node_id = node;
    lease.value.next_attempt_at = lease.value.expires_at;
    BERTH_TRY(run, store::update_run(s, std::move(run), now));
    BERTH_TRY(lease, store::update_lease(s, std::move(lease), now));
    return ClaimedRun{std::move(run), std::move(lease)};
  };
  BERTH_CO_TRY(auto claimed, co_await tools_.services.store.write(take));
  fault_point("adopt.recorded");
  if (claimed) {
    log::info("run.adopted", {{"run", orphan.value.id}});
    start(*std::move(claimed));
  } else if (is_out_of_reach && !must_wait) {
    co_return co_await interrupt(orphan.value.id);
  }
  co_return Result<>{};
}

Task<> RunDispatcher::interrupt(core::RunId id) {
  const auto end = [&](store::Session& s) -> Result<> {
    BERTH_DO(expect_alive(s, tools_.leases.node()));
    const Time now = tools_.services.clock.now();
    BERTH_TRY(auto run, store::find_run(s, core::Reach::everything(), id));
    BERTH_TRY(auto lease,
              store::find_lease_record(s, core::Reach::everything(), *run.value.lease_id));
    run.value.error = "The server that held the run is gone, and its command with it";
    run.value.error_code = name_of(Errc::process_lost);
    core::end_phases(run.value.phases, now);
    BERTH_TRY(run, store::move_run(s, std::move(run), core::RunEvent::interrupted, now));
    BERTH_DO(
        note(s, run.value, {.message = *run.value.error, .level = core::EventLevel::error}, now));
    lease.value.failure_reason = "node_lost";
    lease.value.next_attempt_at = now;
    BERTH_DO(store::move_lease(s, std::move(lease), core::LeaseEvent::teardown_failed, now));
    tools_.services.feed.changed(run.value.company_id);
    return {};
  };
  co_return co_await tools_.services.store.write(end);
}

void RunDispatcher::after_beat(bool has_peers) {
  has_peers_ = has_peers;
  for (const auto& [id, work] : live_) work->renew();
  work_.start("look for cancels", look_for_cancels());
}

Task<> RunDispatcher::look_for_cancels() {
  if (live_.empty()) co_return Result<>{};
  BERTH_CO_TRY(const auto runs, co_await tools_.services.store.read([&](store::Session& s) {
    return store::runs_of_node(s, tools_.leases.node(), tools_.options.runs_max);
  }));
  for (const auto& run : runs) {
    if (run.value.cancel_requested_at) cancel(run.value.id);
  }
  co_return Result<>{};
}

bool RunDispatcher::is_before_end(const core::RunId& run) const {
  const auto found = live_.find(run);
  return found != live_.end() && !core::is_final(found->second->status());
}

void RunDispatcher::cancel(const core::RunId& run) {
  if (const auto found = live_.find(run); found != live_.end()) found->second->cancel();
}

Task<> RunDispatcher::send(core::RunId run, places::Input input) {
  const auto found = live_.find(run);
  if (found == live_.end()) {
    co_return fail(Errc::run_not_running, "Run " + run.str() + " does not execute here",
                   "wait until it is running; send it to the server that works on it");
  }
  const std::shared_ptr<RunJob> work = found->second;
  co_return co_await work->send(std::move(input));
}

void RunDispatcher::hide(const core::RunId& run, const Secret& value) {
  if (const auto found = live_.find(run); found != live_.end()) found->second->hide(value);
}

Task<> RunDispatcher::stop() {
  BERTH_CO_DO(co_await work_.stop());
  // A cancelled task can no longer await anything, not even the side tasks it has started.
  for (const auto& [id, work] : std::exchange(live_, {})) BERTH_CO_DO(co_await work->stop());
  co_return Result<>{};
}

}  // namespace berth::engine
