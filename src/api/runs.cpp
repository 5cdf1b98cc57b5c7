#include "engine/runs/runs.hpp"
#include "api/tables.hpp"
#include "api/use.hpp"

namespace berth::api {
namespace {

constexpr Bounds event_count{.usual = 200, .least = 1, .most = 1000};

struct RunOptions {
  std::optional<core::RunState> status;
  std::optional<core::AgentId> agent_id;
  std::optional<core::EnvironmentId> environment_id;
  std::optional<std::string> name;
  std::optional<std::string> search;
  std::optional<Time> changed_since;
  std::optional<std::int64_t> limit;
  std::optional<std::string> after;
};
BOOST_DESCRIBE_STRUCT(RunOptions, (),
                      (status, agent_id, environment_id, name, search, changed_since, limit, after))

Task<core::Listing<core::RunSummary>> list_runs(engine::Runs& runs, core::Call call,
                                                core::CompanyId company, RunOptions options) {
  BERTH_CO_TRY(core::PageRequest page, page_of(options));
  const engine::RunFilter filter{.status = options.status,
                                 .agent_id = options.agent_id,
                                 .environment_id = options.environment_id,
                                 .name = options.name.value_or(""),
                                 .search = options.search.value_or("")};
  if (!options.changed_since) co_return co_await runs.list(call, company, filter, std::move(page));
  if (options.after || options.status) {
    co_return fail(Errc::unprocessable,
                   "changedSince does not go with " +
                       std::string{options.after ? "after" : "status"} +
                       ": a run that left the list could not be told",
                   "leave it out, and read the list again when more than `limit` runs changed");
  }
  co_return co_await runs.changes(call, company, filter, *options.changed_since, page.limit);
}

struct WaitOptions {
  std::optional<std::int64_t> wait;  // seconds
  std::optional<engine::RunMoment> until;

  Result<> check() const { return check_bounds({{"wait", wait, wait_seconds}}); }
};
BOOST_DESCRIBE_STRUCT(WaitOptions, (), (wait, until))

Task<engine::RunView> read_run(engine::Runs& runs, core::Call call, core::RunId id,
                               WaitOptions options) {
  const std::chrono::seconds wait{options.wait.value_or(wait_seconds.usual)};
  co_return co_await runs.get(std::move(call), std::move(id), wait,
                              options.until.value_or(engine::RunMoment::change));
}

struct EventOptions {
  std::optional<std::int64_t> after_seq;
  std::optional<std::int64_t> limit;

  Result<> check() const {
    return check_bounds({{"afterSeq", after_seq, any_offset}, {"limit", limit, event_count}});
  }
};
BOOST_DESCRIBE_STRUCT(EventOptions, (), (after_seq, limit))

Task<std::vector<core::RunEventRecord>> list_events(engine::Runs& runs, core::Call call,
                                                    core::RunId id, EventOptions options) {
  co_return co_await runs.events(std::move(call), std::move(id),
                                 options.after_seq.value_or(any_offset.usual),
                                 options.limit.value_or(event_count.usual));
}

struct TranscriptOptions {
  std::optional<std::int64_t> after_seq;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> wait;  // seconds

  Result<> check() const {
    return check_bounds({{"afterSeq", after_seq, any_offset},
                         {"limit", limit, event_count},
                         {"wait", wait, wait_seconds}});
  }
};
BOOST_DESCRIBE_STRUCT(TranscriptOptions, (), (after_seq, limit, wait))

Task<core::Transcript> read_transcript(engine::Runs& runs, core::Call call, core::RunId id,
                                       TranscriptOptions options) {
  engine::TranscriptRead read;
  read.after_seq = options.after_seq.value_or(any_offset.usual);
  read.limit = options.limit.value_or(event_count.usual);
  read.wait = std::chrono::seconds{options.wait.value_or(wait_seconds.usual)};
  co_return co_await runs.transcript(std::move(call), std::move(id), read);
}

}  // namespace

std::vector<Entry> run_operations(engine::Runs& runs) {
  using core::Permission;
  using engine::Runs;
  return {
      Operation{.name = "run.start",
                .needs = Permission::company_operate,
                .says = "Start a command in an environment; the answer is the queued run",
                .call = use(runs, &Runs::start)},
      Operation{.name = "agent.invoke",
                .needs = Permission::agent_invoke,
                .says = "Start a turn of an agent; an agent may start only itself",
                .call = use(runs, &Runs::invoke)},
      Operation{.name = "agent.wake",
                .needs = Permission::agent_invoke,
                .says = "Start a turn of an agent and say what woke it",
                .call = use(runs, &Runs::invoke)},
      Operation{.name = "run.list",
                .needs = Permission::company_read,
                .says = "List the runs of a company, newest first, without what they printed; with "
                        "changedSince=TIME those that began, ended or changed since then",
                .call = use(runs, list_runs)},
      Operation{.name = "run.get",
                .needs = Permission::company_read,
                .says = "Read a run; with wait=SECONDS, as soon as it changes its state, or "
                        "until=end it is over, or until=release its place was given back too",
                .call = use(runs, read_run)},
      Operation{.name = "run.cancel",
                .needs = Permission::company_operate,
                .says = "Cancel a run: its whole process tree is ended; one that is over stays as "
                        "it is",
                .call = use(runs, &Runs::cancel)},
      Operation{.name = "run.retry",
                .needs = Permission::company_operate,
                .says = "Start a run that is over once more, as it was asked for",
                .call = use(runs, &Runs::retry)},
      Operation{.name = "run.delete",
                .needs = Permission::company_operate,
                .says = "Delete a run that is over, with its log and its events",
                .call = use(runs, &Runs::remove)},
      Operation{.name = "run.events",
                .needs = Permission::company_read,
                .says = "List what happened to a run, in order",
                .call = use(runs, list_events)},
      Operation{.name = "run.transcript",
                .needs = Permission::company_read,
                .says = "Read the work of an agent in a run: prompt, messages, tool calls, tokens "
                        "and cost; afterSeq pages, wait=SECONDS waits for more",
                .call = use(runs, read_transcript)},
  };
}

}  // namespace berth::api
