// How runs are requested: the whole request is one transaction, from the row to the first event.
#include "core/config/adapters.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/environments/checks.hpp"
#include "engine/idempotent_write.hpp"
#include "engine/journal.hpp"
#include "engine/runs/run_dispatcher.hpp"
#include "engine/runs/run_inputs.hpp"
#include "engine/runs/run_notes.hpp"
#include "engine/runs/run_place.hpp"
#include "engine/runs/runs.hpp"
#include "engine/secrets/environment_secrets.hpp"
#include "store/agents.hpp"
#include "store/companies.hpp"
#include "store/retention.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t timeout_ms_max = 30LL * 24 * 60 * 60 * 1000;
constexpr std::int64_t grace_ms_max = 10LL * 60 * 1000;
constexpr std::int64_t terminal_size_max = 10'000;

// The data for a run that has no row yet.
struct Request {
  core::CompanyId company_id;
  std::optional<core::AgentId> agent_id = {};
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::RunCommand> command = {};
  bj::object env = {};
  std::string stdin_text = {};
  core::InvocationSource source = core::InvocationSource::on_demand;
  std::optional<core::TriggerDetail> trigger_detail = {};
  bj::object context = {};
  std::optional<std::string> name = {};
  std::optional<core::RunId> retry_of = {};
};

Result<> check_number(std::optional<std::int64_t> value, std::string_view field, std::int64_t least,
                      std::int64_t most) {
  if (!value || (*value >= least && *value <= most)) return {};
  return fail(Errc::unprocessable,
              "/" + std::string{field} + ": is not a number from " + std::to_string(least) +
                  " to " + std::to_string(most),
              "leave it out for the default");
}

Result<core::RunCommand> command_of(const StartRun& wanted) {
  core::RunCommand command{.argv = {wanted.command}, .cwd = wanted.cwd};
  if (wanted.args) {
    command.argv.insert(command.argv.end(), wanted.args->begin(), wanted.args->end());
  }
  BERTH_DO(core::check_argv(command.argv));
  if (wanted.cwd && (!wanted.cwd->starts_with('/') || wanted.cwd->contains('\0'))) {
    return fail(Errc::unprocessable, "/cwd: " + in_quotes(*wanted.cwd) + " is not an absolute path",
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

// Run names are accepted where ids and `last` are, so they must differ from both.
Result<std::optional<std::string>> name_for(const std::optional<std::string>& wanted) {
  if (!wanted) return std::nullopt;
  BERTH_TRY(std::string name, checked_name(*wanted, "/name"));
  if (name != "last" && !is_uuid(name)) return name;
  return fail(Errc::unprocessable, "/name: '" + name + "' already means a run",
              "choose another name");
}

Result<std::optional<core::Agent>> runnable_agent(store::Session& session, const Request& request) {
  if (!request.agent_id) return std::nullopt;
  BERTH_TRY(auto row,
            store::find_agent(session, core::Reach::only(request.company_id), *request.agent_id));
  const bool can_run = row.value.status != core::AgentStatus::terminated &&
                       row.value.status != core::AgentStatus::pending_approval;
  if (can_run) return std::move(row.value);
  return fail(Errc::agent_not_runnable,
              "Agent " + row.value.name + " is " + std::string{name_of(row.value.status)},
              "set its status to idle");
}

// The environment for a retry: an environment that was requested, or that the agent was bound to,
// is part of the original request.
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

// Every list shows each run's arguments and variable names.
Result<> check_width(const Request& request, const core::EnvVars& vars) {
  constexpr std::size_t variables_max = 1000;
  constexpr std::size_t arguments_max = 4096;
  if (vars.canonical.size() > variables_max) {
    return fail(Errc::unprocessable,
                "/env: has " + std::to_string(vars.canonical.size()) + " variables; a run takes " +
                    std::to_string(variables_max) + " at the most",
                "pass more in a file or on stdin");
  }
  if (request.command && request.command->argv.size() > arguments_max) {
    return fail(Errc::unprocessable,
                "/args: has " + std::to_string(request.command->argv.size()) +
                    " words; a run takes " + std::to_string(arguments_max) + " at the most",
                "pass more in a file or on stdin");
  }
  return {};
}

// Whether a run has its own input in the store. An agent's run always has one, so a missing one is
// known to be lost.
bool has_input(const core::Run& run) {
  if (run.agent_id || !run.command) return true;
  return !run.command->env_names.empty() || run.command->stdin_bytes > 0;
}

Result<> insert_with_input(store::Session& session, Services& services, const core::Run& run,
                           const core::RunInput& input) {
  if (!has_input(run)) return store::insert_run(session, run);
  BERTH_TRY(const store::SealedInput sealed, seal_run_input(session, services, input));
  BERTH_DO(store::insert_run(session, run, std::ssize(sealed.material)));
  return store::insert_run_input(session, sealed);
}

// The input of an earlier run, for a run that repeats it.
Result<core::RunInput> input_again(store::Session& session, Services& services,
                                   const core::Run& before) {
  BERTH_TRY(const auto sealed, store::find_run_input(session, before.id));
  if (!sealed && !has_input(before)) {
    return core::RunInput{.run_id = before.id, .command = before.command};
  }
  if (!sealed) {
    return fail(Errc::unprocessable,
                "Run " + before.id.str() +
                    " is from an older server, which did not keep its prompt, variables and stdin",
                "start a new run with them");
  }
  BERTH_TRY(core::RunInput given, unseal_run_input(services, *sealed));
  if (before.agent_id || given.command) return given;
  return fail(Errc::agent_not_found, "The agent of run " + before.id.str() + " was deleted",
              "start a run of another agent");
}

// The run, its input, its secret bindings, its first event and the activity entry: one transaction.
Result<core::Run> insert(store::Session& session, Services& services, const Catalog& catalog,
                         const core::Call& call, const Request& request) {
  BERTH_TRY(const auto company,
            store::find_company(session, core::Reach::of(call.who), request.company_id));
  BERTH_TRY(const std::optional<core::Agent> agent, runnable_agent(session, request));
  BERTH_TRY(const core::ChosenEnvironment choice,
            choose_place(session, services, catalog,
                         {call.who, company.value, agent, request.environment_id}));
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const core::EnvVars vars,
            core::normalize_env_vars(request.env, settings.plain_secrets(), "/env"));
  BERTH_DO(check_width(request, vars));
  const Time now = services.clock.now();
  core::Run run{.id = core::RunId::make(services.random, now),
                .company_id = request.company_id,
                .agent_id = request.agent_id,
                .environment_id = choice.environment_id,
                .invocation_source = request.source,
                .trigger_detail = request.trigger_detail,
                .command = request.command,
                .environment_choice = choice,
                .retry_of_run_id = request.retry_of,
                .name = request.name,
                .responsible_user_id = call.who.responsible_user(),
                .context_snapshot = request.context,
                .created_at = now,
                .updated_at = now};
  if (run.command) run.command->env_names = names_of(vars.canonical);
  core::enter_phase(run.phases, core::RunPhase::queued, now);
  BERTH_DO(insert_with_input(session, services, run,
                             {.run_id = run.id,
                              .env = vars.canonical,
                              .stdin_text = request.stdin_text,
                              .command = run.command}));
  if (!vars.refs.empty()) {
    BERTH_DO(bind_refs(session, services, request.company_id, core::SecretTarget::run, run.id.str(),
                       BindingPart::env_vars, vars.refs));
  }
  BERTH_DO(note(session, run, {.message = choice.explanation}, now));
  bj::object details{{"environmentId", choice.environment_id.str()},
                     {"reason", name_of(choice.reason)}};
  if (run.agent_id) details["agentId"] = run.agent_id->str();
  BERTH_DO(record(
      session, services, call,
      {run.company_id, "heartbeat.invoked", "heartbeat_run", run.id.str(), std::move(details)}));
  return run;
}

// An operator decides where an agent works and with which variables. Otherwise an agent in a
// sandbox could start itself outside it, or with a secret that it was never given.
Result<> may_request(const core::Caller& who, const InvokeAgent& wanted) {
  if (who.kind != core::CallerKind::agent_key) return {};
  const bool has_variables = wanted.env && !wanted.env->empty();
  if (!wanted.environment_id && !has_variables) return {};
  return fail(Errc::forbidden,
              std::string{wanted.environment_id ? "environmentId" : "env"} +
                  ": an agent that starts itself chooses neither its place nor its variables",
              "leave it out, or let an operator start the agent");
}

// An agent that starts itself in a loop must not fill everyone else's queue.
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

// Rejected here, because starting the program would be useless.
Result<> expect_prompt(const core::Agent& agent, const InvokeAgent& wanted) {
  const core::InvocationFacts facts{
      .prompt_facts = {{"agent", {{"id", agent.id.str()}, {"name", agent.name}}},
                       {"company", {{"id", agent.company_id.str()}}},
                       {"run", {{"id", "run"}}},
                       {"context", wanted.payload.value_or(bj::object{})}},
      .prompt = wanted.prompt};
  return core::check_prompt(agent.adapter_type, agent.adapter_config, facts);
}

// An agent of another company is reported as missing, also to an agent, which may start only
// itself.
Task<> expect_invocable(Services& services, const core::Call& call, const core::AgentId& agent) {
  const Result<> allowed = core::may_invoke(call.who, agent);
  if (allowed) co_return allowed;
  BERTH_CO_DO(co_await services.store.read(
      [&](store::Session& s) { return store::find_agent(s, core::Reach::of(call.who), agent); }));
  co_return allowed;
}

}  // namespace

Task<core::Run> Runs::queue(const core::Call& call, Insert insert) {
  dispatcher_.expect_new();
  BERTH_CO_TRY(core::Run run, co_await idempotent_write(services_, call, insert));
  std::int64_t bytes = store::payload_bytes(run);
  if (has_input(run)) {
    // Read before the run has a log, which counts when the run has ended. The next recount makes up
    // for a failed read.
    const auto stored = co_await services_.store.read(
        [&](store::Session& s) { return store::run_bytes(s, run.id); });
    if (stored) bytes = *stored;
  }
  guards_.quotas.add(run.company_id, bytes);
  services_.feed.changed(run.company_id);
  dispatcher_.take_new(run.id);
  co_return run;
}

Task<core::Run> Runs::start(core::Call call, core::CompanyId company, StartRun wanted) {
  Request request{.company_id = std::move(company),
                  .agent_id = wanted.agent_id,
                  .environment_id = wanted.environment_id,
                  .env = wanted.env.value_or(bj::object{}),
                  .stdin_text = wanted.stdin_text.value_or("")};
  BERTH_CO_TRY(request.command, command_of(wanted));
  BERTH_CO_TRY(request.name, name_for(wanted.name));
  const Result<> room = co_await guards_.quotas.expect_room(
      call, [&](store::Session& /*s*/) -> Result<core::CompanyId> { return request.company_id; });
  const auto work = [&](store::Session& s) -> Result<core::Run> {
    BERTH_DO(room);
    return insert(s, services_, catalog_, call, request);
  };
  co_return co_await queue(call, work);
}

Task<core::Run> Runs::invoke(core::Call call, core::AgentId agent, InvokeAgent wanted) {
  BERTH_CO_DO(co_await expect_invocable(services_, call, agent));
  BERTH_CO_DO(may_request(call.who, wanted));
  BERTH_CO_TRY(wanted.name, name_for(wanted.name));
  BERTH_CO_DO(co_await expect_calm(services_, guards_, call, agent));
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
    Request request{.company_id = row.value.company_id,
                    .agent_id = agent,
                    .environment_id = wanted.environment_id,
                    .env = wanted.env.value_or(bj::object{}),
                    .stdin_text = wanted.prompt.value_or(""),
                    .source = wanted.source.value_or(core::InvocationSource::on_demand),
                    .trigger_detail = wanted.trigger_detail,
                    .context = wanted.payload.value_or(bj::object{}),
                    .name = wanted.name};
    if (wanted.reason) request.context["reason"] = *wanted.reason;
    if (wanted.force_fresh_session)
      request.context["forceFreshSession"] = *wanted.force_fresh_session;
    return insert(s, services_, catalog_, call, request);
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
    BERTH_TRY(core::RunInput given, input_again(s, services_, before));
    Request request{.company_id = before.company_id,
                    .agent_id = before.agent_id,
                    .environment_id = place_again(before),
                    .command = std::move(given.command),
                    .env = std::move(given.env),
                    .stdin_text = std::move(given.stdin_text),
                    .source = before.invocation_source,
                    .trigger_detail = before.trigger_detail,
                    .context = before.context_snapshot,
                    .name = before.name,
                    .retry_of = id};
    return insert(s, services_, catalog_, call, request);
  };
  co_return co_await queue(call, work);
}

}  // namespace berth::engine
