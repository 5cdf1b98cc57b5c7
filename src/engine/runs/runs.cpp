#include "engine/runs/runs.hpp"

#include "base/fault_point.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/runs/run_notes.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/companies.hpp"
#include "store/nodes.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/run_events.hpp"

namespace berth::engine {
namespace {

// Changes by another server do not wake waiters here.
constexpr std::chrono::milliseconds run_look_every{1000};
constexpr std::chrono::milliseconds wait_max{60'000};
// Each follower that reads slowly holds one block.
constexpr std::size_t follow_bytes = std::size_t{128} << 10;

EnvironmentBrief brief_of(const core::Environment& environment) {
  return {environment.id, environment.name, environment.driver};
}

bool has_come(RunMoment moment, core::RunState before, const RunView& now) {
  const bool is_over = core::is_final(now.status);
  switch (moment) {
    case RunMoment::change: return is_over || now.status != before;
    case RunMoment::end: return is_over;
    case RunMoment::release: break;
  }
  if (!is_over || !now.environment_lease) return is_over;
  const core::LeaseState lease = now.environment_lease->status;
  return core::is_final(lease) || lease == core::LeaseState::retained;
}

LeaseBrief brief_of(const core::LeaseRecord& lease) {
  return {.id = lease.id,
          .status = lease.status,
          .lease_policy = lease.lease_policy,
          .provider = lease.provider,
          .provider_lease_id = lease.provider_lease_id,
          .failure_reason = lease.failure_reason,
          .cleanup_status = lease.cleanup_status,
          .acquired_at = lease.acquired_at,
          .released_at = lease.released_at};
}

}  // namespace

Task<core::Run> Runs::cancel(core::Call call, core::RunId id) {
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    const Time now = services_.clock.now();
    BERTH_TRY(auto row, store::find_run(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return std::move(row.value);
    BERTH_TRY(row, store::request_cancel(s, core::Reach::of(call.who), id, now));
    BERTH_DO(record(s, services_, call,
                    {row.value.company_id, "heartbeat.cancelled", "heartbeat_run", id.str()}));
    if (row.value.status != core::RunState::queued) return std::move(row.value);
    // Nothing was started, so the intention is the fact.
    row.value.error = "Cancelled by an operator";
    row.value.error_code = name_of(Errc::cancelled);
    core::end_phases(row.value.phases, now);
    BERTH_TRY(row, store::move_run(s, std::move(row), core::RunEvent::cancelled, now));
    BERTH_DO(note(s, row.value, {.message = *row.value.error}, now));
    return std::move(row.value);
  };
  BERTH_CO_TRY(core::Run run, co_await services_.store.write(work));
  fault_point("cancel.recorded");
  dispatcher_.cancel(id);
  services_.feed.changed(run.company_id);
  services_.feed.changed(id);
  co_return run;
}

Task<core::Listing<core::RunSummary>> Runs::list(core::Call call, core::CompanyId company,
                                                 store::RunFilter filter, core::PageRequest page) {
  using Rows = core::Page<core::ListedRun>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::brief_runs(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows), core::summary_of);
}

Task<core::Listing<core::RunSummary>> Runs::changes(core::Call call, core::CompanyId company,
                                                    store::RunFilter filter, Time since,
                                                    std::int64_t limit) {
  using Rows = std::vector<core::ListedRun>;
  BERTH_CO_TRY(Rows rows, co_await services_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::runs_changed_since(s, company, filter, since, limit);
  }));
  core::Listing<core::RunSummary> out;
  for (core::ListedRun& run : rows) out.rows.push_back(core::summary_of(std::move(run)));
  co_return out;
}

Task<RunView> Runs::get(core::Call call, core::RunId id, std::chrono::milliseconds wait,
                        RunMoment until) {
  const auto look = [&](store::Session& s) -> Result<RunView> {
    BERTH_TRY(auto row, store::find_run(s, core::Reach::of(call.who), id));
    RunView view{{std::move(row.value)}};
    if (view.status == core::RunState::queued) {
      BERTH_TRY(view.queue, place_in_queue(s, view, dispatcher_.limits()));
    }
    const core::Reach reach = core::Reach::of(call.who);
    if (view.environment_id) {
      const auto environment = store::find_environment(s, reach, *view.environment_id);
      if (environment) view.environment = brief_of(environment->value);
    }
    if (view.lease_id) {
      const auto lease = store::find_lease_record(s, reach, *view.lease_id);
      if (lease) view.environment_lease = brief_of(lease->value);
    }
    BERTH_TRY(view.server, server_of(s, view.node_id));
    return view;
  };
  BERTH_CO_TRY(RunView view, co_await services_.store.read(look));
  const core::RunState before = view.status;
  const Clock::Steady limit = services_.clock.steady() + std::min(wait, wait_max);
  bool is_old = false;
  while (!has_come(until, before, view)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(limit - services_.clock.steady());
    if (left.count() <= 0) break;
    BERTH_CO_DO(co_await services_.feed.wait(id, std::min(left, run_look_every)));
    // For a run that this server works on, it is known without the store that it has not ended.
    is_old = until != RunMoment::change && dispatcher_.is_before_end(id);
    if (is_old) continue;
    BERTH_CO_TRY(view, co_await services_.store.read(look));
  }
  if (is_old) {
    BERTH_CO_TRY(view, co_await services_.store.read(look));
  }
  co_return view;
}

Task<std::vector<core::RunEventRecord>> Runs::events(core::Call call, core::RunId id,
                                                     std::int64_t after_seq, std::int64_t limit) {
  using Events = std::vector<core::RunEventRecord>;
  co_return co_await services_.store.read([&](store::Session& s) -> Result<Events> {
    BERTH_DO(store::find_run(s, core::Reach::of(call.who), id));
    return store::run_events_after(s, id, after_seq, limit);
  });
}

Task<Runs::EventNews> Runs::next_events(core::Call call, core::RunId id, std::int64_t after_seq) {
  constexpr std::int64_t batch = 200;
  const auto look = [&](store::Session& s) -> Result<EventNews> {
    // The status is read first, so that all events before a final status are seen.
    BERTH_TRY(const auto run, store::find_run(s, core::Reach::of(call.who), id));
    EventNews news;
    BERTH_TRY(news.events, store::run_events_after(s, id, after_seq, batch));
    news.complete = news.events.empty() && core::is_final(run.value.status);
    return news;
  };
  BERTH_CO_TRY(EventNews news, co_await services_.store.read(look));
  if (!news.events.empty() || news.complete) co_return news;
  BERTH_CO_DO(co_await services_.feed.wait(id, run_look_every));
  co_return co_await services_.store.read(look);
}

Task<LogText> Runs::log(core::Call call, core::RunId id, LogRead read) {
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_run(s, core::Reach::of(call.who), id);
  }));
  BERTH_CO_DO(co_await expect_log(row.value));
  BERTH_CO_TRY(core::LogPage page, read_page(id, read));
  const bool is_over = core::is_final(row.value.status);
  co_return LogText{.run_id = id,
                    .content = std::move(page.content),
                    .next_offset = page.next_offset,
                    .eof = is_over && page.next_offset >= row.value.log_bytes};
}

Result<core::LogPage> Runs::read_page(const core::RunId& id, const LogRead& read) const {
  if (read.format == LogFormat::raw && !read.stream) {
    BERTH_TRY(std::string bytes, logs_.read_bytes(id, read.offset, read.bytes_max));
    const std::int64_t next = read.offset + static_cast<std::int64_t>(bytes.size());
    return core::LogPage{.content = std::move(bytes), .next_offset = next};
  }
  BERTH_TRY(const LogBlock block, logs_.read(id, read.offset, read.bytes_max));
  if (read.format == LogFormat::lines) {
    return core::log_lines(block.pieces, read.offset, read.bytes_max);
  }
  return core::log_bytes(block.pieces, read.offset, read.bytes_max, read.stream);
}

Task<> Runs::expect_log(const core::Run& run) const {
  if (run.log_removed_at) {
    co_return fail(Errc::log_unavailable,
                   "The log of run " + run.id.str() + " was removed after its retention time",
                   "set logRetentionDays with 'berth settings set' to keep logs for longer");
  }
  const bool is_at_work = run.node_id && !core::is_final(run.status);
  const bool may_be_elsewhere = run.log_bytes > 0 || (is_at_work && run.node_id != node_);
  if (!may_be_elsewhere || logs_.has(run.id)) co_return Result<>{};
  std::optional<core::Node> holder;
  if (run.node_id && run.node_id != node_) {
    BERTH_CO_TRY(holder, co_await services_.store.read(
                             [&](store::Session& s) { return store::find_node(s, *run.node_id); }));
  }
  // There is no output yet, and the former server is dead: this server may continue the run.
  if (run.log_bytes == 0 && (!holder || holder->fenced_at)) co_return Result<>{};
  if (holder) {
    co_return fail(Errc::log_unavailable,
                   "The log of run " + run.id.str() + " is on the disk of " + described(*holder),
                   "ask that server: " + command_at(*holder, "run logs " + run.id.str()));
  }
  co_return fail(Errc::log_unavailable,
                 "The log of run " + run.id.str() + " is not on the disk of this server",
                 "look in the home of the server that worked on it, node " +
                     (run.node_id ? run.node_id->str() : "unknown"));
}

Task<LogNews> Runs::follow(core::Call call, core::RunId id, std::int64_t offset) {
  for (int look = 0;; ++look) {
    // The status is read before the bytes, so that everything written before a final status is
    // seen.
    BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
      return store::find_run(s, core::Reach::of(call.who), id);
    }));
    BERTH_CO_DO(co_await expect_log(row.value));
    LogNews news{.next_offset = offset};
    BERTH_CO_TRY(news.block, logs_.read(id, offset, follow_bytes));
    const bool has_more = !news.block.pieces.empty();
    if (has_more) {
      core::OutputRecord& first = news.block.pieces.front();
      first.bytes.remove_prefix(
          static_cast<std::size_t>(std::max<std::int64_t>(0, offset - first.offset)));
      first.offset = std::max(first.offset, offset);
      const core::OutputRecord& last = news.block.pieces.back();
      news.next_offset = last.offset + static_cast<std::int64_t>(last.bytes.size());
    }
    news.complete = core::is_final(row.value.status) && news.next_offset >= row.value.log_bytes;
    if (has_more || news.complete || look > 0) co_return news;
    BERTH_CO_DO(co_await services_.feed.wait_for_output(id, run_look_every));
  }
}

Task<> Runs::send(core::Call call, core::RunId id, RunInputPiece input) {
  BERTH_CO_TRY(const auto row, co_await services_.store.read([&](store::Session& s) {
    return store::find_run(s, core::Reach::of(call.who), id);
  }));
  if (core::is_final(row.value.status)) {
    co_return fail(Errc::run_not_running, "Run " + id.str() + " is over",
                   "nothing reads what is sent to it");
  }
  const std::optional<core::NodeId>& node = row.value.node_id;
  if (node && node != node_ && !dispatcher_.has(id)) {
    BERTH_CO_TRY(const auto holder, co_await services_.store.read([&](store::Session& s) {
      return store::find_node(s, *node);
    }));
    if (holder && !holder->fenced_at) {
      co_return fail(
          Errc::conflict,
          "Run " + id.str() + " is at " + described(*holder) + ": no input reaches it from here",
          "send it to that server");
    }
  }
  co_return co_await dispatcher_.send(id, std::move(input));
}

}  // namespace berth::engine
