#include "engine/runs.hpp"

#include "core/adapters.hpp"
#include "engine/checks.hpp"
#include "engine/environment_secrets.hpp"
#include "engine/journal.hpp"
#include "engine/listing.hpp"
#include "engine/node_life.hpp"
#include "engine/once.hpp"
#include "engine/run_inputs.hpp"
#include "engine/run_notes.hpp"
#include "engine/run_place.hpp"
#include "engine/settings.hpp"
#include "engine/workshop.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/environments.hpp"
#include "store/leases.hpp"
#include "store/nodes.hpp"
#include "store/run_events.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t timeout_ms_max = 30LL * 24 * 60 * 60 * 1000;
constexpr std::int64_t grace_ms_max = 10LL * 60 * 1000;
constexpr std::int64_t terminal_size_max = 10'000;
// What another server changes wakes nobody here.
constexpr std::chrono::milliseconds run_look_every{1000};
constexpr std::chrono::milliseconds wait_max{60'000};
constexpr std::size_t follow_bytes = std::size_t{1} << 20;

// What a run is made of, before it has a row.
struct Wish {
  core::CompanyId company_id;
  std::optional<core::AgentId> agent_id = {};
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::RunCommand> command = {};
  bj::object env = {};
  std::string stdin_text = {};
  core::InvocationSource source = core::InvocationSource::on_demand;
  std::optional<core::TriggerDetail> trigger_detail = {};
  bj::object context = {};
  std::optional<core::RunId> retry_of = {};
};

Result<> check_number(std::optional<std::int64_t> value, std::string_view field, std::int64_t least,
                      std::int64_t most) {
  if (!value || (*value >= least && *value <= most)) return {};
  return fail(Errc::unprocessable,
              "/" + std::string{field} + ": is no number from " + std::to_string(least) + " to " +
                  std::to_string(most),
              "leave it out for the default");
}

Result<core::RunCommand> command_of(const StartRun& wanted) {
  core::RunCommand command{.argv = {wanted.command}, .cwd = wanted.cwd};
  if (wanted.args) {
    command.argv.insert(command.argv.end(), wanted.args->begin(), wanted.args->end());
  }
  BERTH_DO(core::check_argv(command.argv));
  if (wanted.cwd && (!wanted.cwd->starts_with('/') || wanted.cwd->contains('\0'))) {
    return fail(Errc::unprocessable, "/cwd: " + in_quotes(*wanted.cwd) + " is no absolute path",
                "name a folder of the environment from its root on, or leave it out");
  }
  BERTH_DO(check_number(wanted.timeout_ms, "timeoutMs", 1, timeout_ms_max));
  BERTH_DO(check_number(wanted.grace_ms, "graceMs", 0, grace_ms_max));
  if (wanted.terminal) {
    BERTH_DO(check_number(wanted.terminal->columns, "terminal/columns", 1, terminal_size_max));
    BERTH_DO(check_number(wanted.terminal->rows, "terminal/rows", 1, terminal_size_max));
  }
  if (wanted.stdin_text && wanted.stdin_open.value_or(false)) {
    return fail(Errc::unprocessable, "/stdinText: stdin is either given here or left open",
                "leave out stdinText or stdinOpen");
  }
  command.timeout_ms = wanted.timeout_ms;
  command.grace_ms = wanted.grace_ms.value_or(command.grace_ms);
  command.terminal = wanted.terminal;
  command.stdin_open = wanted.stdin_open.value_or(false);
  command.stdin_bytes = static_cast<std::int64_t>(wanted.stdin_text.value_or("").size());
  return command;
}

Result<std::optional<core::Agent>> runnable_agent(store::Session& session, const Wish& wish) {
  if (!wish.agent_id) return std::nullopt;
  BERTH_TRY(auto row,
            store::find_agent(session, core::Reach::only(wish.company_id), *wish.agent_id));
  const bool can_run = row.value.status != core::AgentStatus::terminated &&
                       row.value.status != core::AgentStatus::pending_approval;
  if (can_run) return std::move(row.value);
  return fail(Errc::agent_not_runnable,
              "Agent " + row.value.name + " is " + std::string{name_of(row.value.status)},
              "set its status to idle");
}

// Where the same run is started again: a place that was asked for, or that its agent was bound to,
// is part of what it was.
std::optional<core::EnvironmentId> place_again(const core::Run& before) {
  if (!before.environment_choice) return std::nullopt;
  const core::ChoiceReason reason = before.environment_choice->reason;
  const bool is_part =
      reason == core::ChoiceReason::run || reason == core::ChoiceReason::calling_run;
  return is_part ? before.environment_id : std::nullopt;
}

std::vector<std::string> names_of(const bj::object& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
}

// Each run carries its words and the names of its variables into every list.
Result<> check_width(const Wish& wish, const core::EnvVars& vars) {
  constexpr std::size_t variables_max = 1000;
  constexpr std::size_t arguments_max = 4096;
  if (vars.canonical.size() > variables_max) {
    return fail(Errc::unprocessable,
                "/env: has " + std::to_string(vars.canonical.size()) + " variables; a run takes " +
                    std::to_string(variables_max) + " at the most",
                "pass more in a file or on stdin");
  }
  if (wish.command && wish.command->argv.size() > arguments_max) {
    return fail(Errc::unprocessable,
                "/args: has " + std::to_string(wish.command->argv.size()) + " words; a run takes " +
                    std::to_string(arguments_max) + " at the most",
                "pass more in a file or on stdin");
  }
  return {};
}

// The run, what it was given, the bindings of its secrets, its first event and the activity: one
// transaction.
Result<core::Run> insert(store::Session& session, Means& means, const Catalog& catalog,
                         const core::Call& call, const Wish& wish) {
  BERTH_TRY(const auto company,
            store::find_company(session, core::Reach::of(call.who), wish.company_id));
  BERTH_TRY(const std::optional<core::Agent> agent, runnable_agent(session, wish));
  BERTH_TRY(
      const core::ChosenEnvironment choice,
      choose_place(session, means, catalog, {call.who, company.value, agent, wish.environment_id}));
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const core::EnvVars vars,
            core::normalize_env_vars(wish.env, settings.plain_secrets(), "/env"));
  BERTH_DO(check_width(wish, vars));
  const Time now = means.clock.now();
  core::Run run{.id = core::RunId::make(means.random, now),
                .company_id = wish.company_id,
                .agent_id = wish.agent_id,
                .environment_id = choice.environment_id,
                .invocation_source = wish.source,
                .trigger_detail = wish.trigger_detail,
                .command = wish.command,
                .environment_choice = choice,
                .retry_of_run_id = wish.retry_of,
                .context_snapshot = wish.context,
                .created_at = now,
                .updated_at = now};
  if (run.command) run.command->env_names = names_of(vars.canonical);
  core::enter_phase(run.phases, core::RunPhase::queued, now);
  BERTH_DO(store::insert_run(session, run));
  if (!vars.canonical.empty() || !wish.stdin_text.empty()) {
    BERTH_TRY(
        const store::SealedInput sealed,
        seal_run_input(session, means,
                       {.run_id = run.id, .env = vars.canonical, .stdin_text = wish.stdin_text}));
    BERTH_DO(store::insert_run_input(session, sealed));
  }
  if (!vars.refs.empty()) {
    BERTH_DO(bind_refs(session, means, wish.company_id, core::SecretTarget::run, run.id.str(),
                       BindingPart::env_vars, vars.refs));
  }
  BERTH_DO(note(session, run, {.message = choice.explanation}, now));
  BERTH_DO(record(
      session, means, call,
      {run.company_id,
       "heartbeat.invoked",
       "heartbeat_run",
       run.id.str(),
       {{"environmentId", choice.environment_id.str()}, {"reason", name_of(choice.reason)}}}));
  return run;
}

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

// Where an agent works, and with what, is its operator's to say: what runs in a sandbox would else
// start itself outside of it, or with a secret that it was never given.
Result<> may_wish(const core::Caller& who, const InvokeAgent& wanted) {
  if (who.kind != core::CallerKind::agent_key) return {};
  const bool has_variables = wanted.env && !wanted.env->empty();
  if (!wanted.environment_id && !has_variables) return {};
  return fail(Errc::forbidden,
              std::string{wanted.environment_id ? "environmentId" : "env"} +
                  ": an agent that starts itself chooses neither its place nor its variables",
              "leave it out, or let an operator start the agent");
}

// An agent that starts itself in a circle must not fill the queue of everybody else.
Result<> has_room(store::Session& session, const core::Caller& who, const core::Agent& agent) {
  constexpr std::int64_t waiting_max = 20;
  if (who.kind != core::CallerKind::agent_key) return {};
  const store::RunFilter waiting{.status = core::RunState::queued, .agent_id = agent.id};
  BERTH_TRY(const auto found,
            store::list_runs(session, agent.company_id, waiting, {.limit = waiting_max}));
  if (std::ssize(found.rows) < waiting_max) return {};
  return fail(Errc::overloaded,
              "Agent " + agent.id.str() + " has " + std::to_string(waiting_max) +
                  " runs of its own waiting",
              "wait until some of them have begun");
}

// Refused here, since the program would be started for nothing.
Result<> expect_prompt(const core::Agent& agent, const InvokeAgent& wanted) {
  const core::InvocationFacts facts{
      .prompt_facts = {{"agent", {{"id", agent.id.str()}, {"name", agent.name}}},
                       {"company", {{"id", agent.company_id.str()}}},
                       {"run", {{"id", "run"}}},
                       {"context", wanted.payload.value_or(bj::object{})}},
      .prompt = wanted.prompt};
  return core::check_prompt(agent.adapter_type, agent.adapter_config, facts);
}

}  // namespace

Task<core::Run> Runs::queue(const core::Call& call, Insert insert) {
  workshop_.expect_new();
  BERTH_CO_TRY(core::Run run, co_await write_once(means_, call, insert));
  guards_.quotas.add(run.company_id, store::payload_bytes(run));
  means_.feed.changed(run.company_id);
  workshop_.take_new(run.id);
  co_return run;
}

Task<core::Run> Runs::start(core::Call call, core::CompanyId company, StartRun wanted) {
  Wish wish{.company_id = std::move(company),
            .agent_id = wanted.agent_id,
            .environment_id = wanted.environment_id,
            .env = wanted.env.value_or(bj::object{}),
            .stdin_text = wanted.stdin_text.value_or("")};
  BERTH_CO_TRY(wish.command, command_of(wanted));
  const Result<> room = co_await guards_.quotas.expect_room(
      call, [&](store::Session& /*s*/) -> Result<core::CompanyId> { return wish.company_id; });
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    BERTH_DO(room);
    return insert(s, means_, catalog_, call, wish);
  };
  co_return co_await queue(call, work);
}

Task<core::Run> Runs::invoke(core::Call call, core::AgentId agent, InvokeAgent wanted) {
  BERTH_CO_DO(may_wish(call.who, wanted));
  BERTH_CO_DO(co_await expect_calm(means_, guards_, call, agent));
  const auto company = [&](store::Session& s) -> Result<core::CompanyId> {
    BERTH_TRY(const auto row, store::find_agent(s, core::Reach::of(call.who), agent));
    return row.value.company_id;
  };
  const Result<> room = co_await guards_.quotas.expect_room(call, company);
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    BERTH_DO(room);
    BERTH_TRY(const auto row, store::find_agent(s, core::Reach::of(call.who), agent));
    BERTH_DO(has_room(s, call.who, row.value));
    BERTH_TRY(const InstanceSettings settings, read_settings(s));
    BERTH_TRY(const Quota quota, quota_of(s, row.value.company_id, settings));
    BERTH_DO(check_size(call.who, wanted, quota));
    BERTH_DO(expect_prompt(row.value, wanted));
    Wish wish{.company_id = row.value.company_id,
              .agent_id = agent,
              .environment_id = wanted.environment_id,
              .env = wanted.env.value_or(bj::object{}),
              .stdin_text = wanted.prompt.value_or(""),
              .source = wanted.source.value_or(core::InvocationSource::on_demand),
              .trigger_detail = wanted.trigger_detail,
              .context = wanted.payload.value_or(bj::object{})};
    if (wanted.reason) wish.context["reason"] = *wanted.reason;
    if (wanted.force_fresh_session) wish.context["forceFreshSession"] = *wanted.force_fresh_session;
    return insert(s, means_, catalog_, call, wish);
  };
  co_return co_await queue(call, work);
}

Task<core::Run> Runs::retry(core::Call call, core::RunId id) {
  const auto company = [&](store::Session& s) -> Result<core::CompanyId> {
    BERTH_TRY(const auto row, store::find_run(s, core::Reach::of(call.who), id));
    return row.value.company_id;
  };
  const Result<> room = co_await guards_.quotas.expect_room(call, company);
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    BERTH_DO(room);
    BERTH_TRY(const auto row, store::find_run(s, core::Reach::of(call.who), id));
    const core::Run& before = row.value;
    if (!core::is_final(before.status)) {
      return fail(Errc::conflict, "Run " + id.str() + " is not over yet",
                  "cancel it first, or wait for its end");
    }
    const bool had_input =
        before.command && (!before.command->env_names.empty() || before.command->stdin_bytes > 0);
    if (had_input && !before.agent_id) {
      return fail(Errc::unprocessable,
                  "Run " + id.str() + " was given variables or stdin, which are not kept",
                  "start a new run with them");
    }
    Wish wish{.company_id = before.company_id,
              .agent_id = before.agent_id,
              .environment_id = place_again(before),
              .source = before.invocation_source,
              .trigger_detail = before.trigger_detail,
              .context = before.context_snapshot,
              .retry_of = id};
    if (!before.agent_id) wish.command = before.command;
    return insert(s, means_, catalog_, call, wish);
  };
  co_return co_await queue(call, work);
}

Task<core::Run> Runs::cancel(core::Call call, core::RunId id) {
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    const Time now = means_.clock.now();
    BERTH_TRY(auto row, store::find_run(s, core::Reach::of(call.who), id));
    if (core::is_final(row.value.status)) return std::move(row.value);
    BERTH_TRY(row, store::request_cancel(s, core::Reach::of(call.who), id, now));
    BERTH_DO(record(s, means_, call,
                    {row.value.company_id, "heartbeat.cancelled", "heartbeat_run", id.str()}));
    if (row.value.status != core::RunState::queued) return std::move(row.value);
    // Nothing was started, so the intention is the fact.
    row.value.error = "Cancelled by a board operator";
    row.value.error_code = name_of(Errc::cancelled);
    core::end_phases(row.value.phases, now);
    BERTH_TRY(row, store::move_run(s, std::move(row), core::RunEvent::cancelled, now));
    BERTH_DO(note(s, row.value, {.message = *row.value.error}, now));
    return std::move(row.value);
  };
  BERTH_CO_TRY(core::Run run, co_await means_.store.write(work));
  workshop_.cancel(id);
  means_.feed.changed(run.company_id);
  means_.feed.changed(id);
  co_return run;
}

Task<core::Listing<core::RunSummary>> Runs::list(core::Call call, core::CompanyId company,
                                                 store::RunFilter filter, core::PageRequest page) {
  using Rows = core::Page<core::ListedRun>;
  BERTH_CO_TRY(Rows rows, co_await means_.store.read([&](store::Session& s) -> Result<Rows> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return store::brief_runs(s, company, filter, page);
  }));
  co_return to_listing(std::move(rows), core::summary_of);
}

Task<core::Listing<core::RunSummary>> Runs::changes(core::Call call, core::CompanyId company,
                                                    store::RunFilter filter, Time since,
                                                    std::int64_t limit) {
  using Rows = std::vector<core::ListedRun>;
  BERTH_CO_TRY(Rows rows, co_await means_.store.read([&](store::Session& s) -> Result<Rows> {
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
      BERTH_TRY(view.queue, place_in_queue(s, view, workshop_.limits()));
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
  BERTH_CO_TRY(RunView view, co_await means_.store.read(look));
  const core::RunState before = view.status;
  const Clock::Steady limit = means_.clock.steady() + std::min(wait, wait_max);
  bool is_old = false;
  while (!has_come(until, before, view)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - means_.clock.steady());
    if (left.count() <= 0) break;
    BERTH_CO_DO(co_await means_.feed.wait(id, std::min(left, run_look_every)));
    // Of what is worked on here it is known without the store that its end has not come.
    is_old = until != RunMoment::change && workshop_.is_before_end(id);
    if (is_old) continue;
    BERTH_CO_TRY(view, co_await means_.store.read(look));
  }
  if (is_old) {
    BERTH_CO_TRY(view, co_await means_.store.read(look));
  }
  co_return view;
}

Task<std::vector<core::RunEventRecord>> Runs::events(core::Call call, core::RunId id,
                                                     std::int64_t after_seq, std::int64_t limit) {
  using Events = std::vector<core::RunEventRecord>;
  co_return co_await means_.store.read([&](store::Session& s) -> Result<Events> {
    BERTH_DO(store::find_run(s, core::Reach::of(call.who), id));
    return store::run_events_after(s, id, after_seq, limit);
  });
}

Task<Runs::EventNews> Runs::next_events(core::Call call, core::RunId id, std::int64_t after_seq) {
  constexpr std::int64_t batch = 200;
  const auto look = [&](store::Session& s) -> Result<EventNews> {
    // The status first: events that came before it was final are then all seen.
    BERTH_TRY(const auto run, store::find_run(s, core::Reach::of(call.who), id));
    EventNews news;
    BERTH_TRY(news.events, store::run_events_after(s, id, after_seq, batch));
    news.complete = news.events.empty() && core::is_final(run.value.status);
    return news;
  };
  BERTH_CO_TRY(EventNews news, co_await means_.store.read(look));
  if (!news.events.empty() || news.complete) co_return news;
  BERTH_CO_DO(co_await means_.feed.wait(id, run_look_every));
  co_return co_await means_.store.read(look);
}

Task<LogText> Runs::log(core::Call call, core::RunId id, LogRead read) {
  BERTH_CO_TRY(const auto row, co_await means_.store.read([&](store::Session& s) {
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
    BERTH_CO_TRY(holder, co_await means_.store.read(
                             [&](store::Session& s) { return store::find_node(s, *run.node_id); }));
  }
  // Nothing was said yet, and who worked on it is gone: whoever goes on with it may be this server.
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
    // The status before the bytes: what was written before it was final is then all seen.
    BERTH_CO_TRY(const auto row, co_await means_.store.read([&](store::Session& s) {
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
    BERTH_CO_DO(co_await means_.feed.wait_for_output(id, run_look_every));
  }
}

Task<> Runs::send(core::Call call, core::RunId id, RunInputPiece input) {
  BERTH_CO_TRY(const auto row, co_await means_.store.read([&](store::Session& s) {
    return store::find_run(s, core::Reach::of(call.who), id);
  }));
  if (core::is_final(row.value.status)) {
    co_return fail(Errc::run_not_running, "Run " + id.str() + " is over",
                   "nothing reads what is sent to it");
  }
  const std::optional<core::NodeId>& node = row.value.node_id;
  if (node && node != node_ && !workshop_.has(id)) {
    BERTH_CO_TRY(const auto holder, co_await means_.store.read([&](store::Session& s) {
      return store::find_node(s, *node);
    }));
    if (holder && !holder->fenced_at) {
      co_return fail(
          Errc::conflict,
          "Run " + id.str() + " is at " + described(*holder) + ": no input reaches it from here",
          "send it to that server");
    }
  }
  co_return co_await workshop_.send(id, std::move(input));
}

}  // namespace berth::engine
