// A run's command: its command line, its variables and its secrets.
#include "base/json/peek.hpp"
#include "core/config/adapter_schema.hpp"
#include "core/config/adapters.hpp"
#include "core/config/sandbox_fields.hpp"
#include "engine/runs/run_inputs.hpp"
#include "engine/runs/run_job.hpp"
#include "engine/runs/run_secrets.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/runs.hpp"

namespace berth::engine {
namespace {

// The time limit in a sandbox for an agent without timeoutSec in its adapter config: a hung agent
// must not hold its place forever.
constexpr std::int64_t agent_sandbox_timeout_ms = std::int64_t{4} * 60 * 60 * 1000;

std::optional<std::int64_t> shorter(const std::optional<std::int64_t>& one,
                                    const std::optional<std::int64_t>& other) {
  if (!one || !other) return one ? one : other;
  return std::min(*one, *other);
}

// The limit for an agent that sets none; a negative one asks for no limit.
std::optional<std::int64_t> agent_limit(const core::Agent& agent, const core::LeaseRecord& lease) {
  const bool declines =
      read_loosely<core::AgentSettings>(agent.adapter_config).timeout_sec.value_or(0) < 0;
  if (declines || lease.driver != core::DriverKind::sandbox) return std::nullopt;
  return agent_sandbox_timeout_ms;
}

// How long the command may run. In our own sandboxes, `timeoutMs` is the maximum for any command.
// In a plugin's sandbox, it applies to a command without its own limit, or is the sandbox's
// lifetime.
std::optional<std::int64_t> limit_of(const std::optional<std::int64_t>& own,
                                     const core::LeaseRecord& lease) {
  // A sandbox's config may limit every command in it.
  const std::optional<std::int64_t> configured =
      read_loosely<core::SandboxFields>(lease.teardown.config).timeout_ms;
  if (lease.teardown.plugin_id) return own ? own : configured;
  return shorter(own, configured);
}

}  // namespace

Task<core::RunInput> RunJob::given_input() {
  const std::optional<core::RunCommand>& command = run_.value.command;
  const bool was_given_nothing =
      !run_.value.agent_id && command && command->env_names.empty() && command->stdin_bytes == 0;
  if (was_given_nothing) co_return core::RunInput{.run_id = id_};
  BERTH_CO_TRY(const auto sealed, co_await tools_.services.store.read([&](store::Session& s) {
    return store::find_run_input(s, id_);
  }));
  if (!sealed) co_return core::RunInput{.run_id = id_};
  co_return unseal_run_input(tools_.services, *sealed);
}

Task<RunJob::Plan> RunJob::plan(core::RunInput input, SessionUse use) {
  Plan out{.command = {.exec_id = id_.str()}, .shown = {}};
  std::string stdin_text = std::move(input.stdin_text);
  // When a run is restarted, its recorded command is the one that named the lost session.
  if (run_.value.command && use == SessionUse::resume) {
    out.shown = *run_.value.command;
  } else {
    if (!agent_) co_return fail(Errc::agent_not_found, "The agent of the run is gone");
    if (use == SessionUse::resume) BERTH_CO_DO(co_await find_session(out));
    core::InvocationFacts facts{
        .prompt_facts = {{"agent", {{"id", agent_->id.str()}, {"name", agent_->name}}},
                         {"company", {{"id", company_.str()}}},
                         {"run", {{"id", id_.str()}}},
                         {"context", run_.value.context_snapshot}},
        .resume_session = out.resumed_session,
        .place = invocation_place()};
    BERTH_CO_TRY(facts.instructions_file, co_await instructions());
    if (!stdin_text.empty()) facts.prompt = std::move(stdin_text);
    BERTH_CO_TRY(core::Invocation built,
                 core::build_invocation(agent_->adapter_type, agent_->adapter_config, facts));
    stdin_text = std::move(built.stdin_text);
    out.prompt = std::move(built.prompt);
    out.defaults = std::move(built.environment);
    out.command.argv = std::move(built.argv);
    out.shown = {.argv = std::move(built.shown_argv),
                 .cwd = std::move(built.cwd),
                 .stdin_bytes = static_cast<std::int64_t>(stdin_text.size()),
                 .timeout_ms = built.timeout_ms,
                 .grace_ms = built.grace_ms};
  }
  if (!out.shown.timeout_ms && !run_.value.command) {
    out.shown.timeout_ms = agent_limit(*agent_, lease_.value);
  }
  out.shown.timeout_ms = limit_of(out.shown.timeout_ms, lease_.value);
  if (out.command.argv.empty()) out.command.argv = out.shown.argv;
  out.command.terminal = out.shown.terminal;
  out.command.timeout_ms = out.shown.timeout_ms;
  out.command.grace_ms = out.shown.grace_ms;
  if (out.shown.stdin_open || out.shown.terminal) {
    out.command.input = places::StdinPipe{};
  } else if (!stdin_text.empty()) {
    out.command.input = places::StdinBytes{Secret{stdin_text}};
  }
  co_return out;
}

Result<core::RunEnvironment> RunJob::environment_for(const Plan& plan, const core::RunInput& input,
                                                     const places::Workspace& workspace) const {
  core::RunFacts facts{.company_id = company_,
                       .run_id = id_,
                       .agent_id = run_.value.agent_id,
                       .api_url = workspace.api_url,
                       .workspace = core::WorkspaceFacts{.cwd = workspace.cwd},
                       .scratch_dir = workspace.scratch,
                       .home = workspace.home,
                       .path = workspace.path,
                       .has_terminal = plan.shown.terminal.has_value()};
  if (environment_->driver == core::DriverKind::local) facts.api_url = tools_.options.api_url;
  if (agent_) {
    // A place that sets its own variables keeps its PATH, unless folders are configured.
    const bool is_its_own = workspace.path && workspace.path->empty();
    const std::vector<std::string> first =
        path_requests(is_its_own ? std::nullopt : workspace.home);
    const std::optional<std::string> rest = is_its_own ? std::nullopt : workspace.path;
    if (!is_its_own || !first.empty()) facts.path = core::path_with(first, rest);
  }
  std::vector<core::EnvLayer> layers;
  bj::object defaults;
  for (const auto& [name, value] : plan.defaults) defaults[name] = value;
  layers.push_back({core::SecretTarget::environment, environment_->id.str(), std::move(defaults)});
  layers.push_back(
      {core::SecretTarget::environment, environment_->id.str(), environment_->env_vars});
  if (agent_) {
    if (auto env = read_loosely<core::AgentSettings>(agent_->adapter_config).env) {
      layers.push_back({core::SecretTarget::agent, agent_->id.str(), *std::move(env)});
    }
  }
  layers.push_back({core::SecretTarget::run, id_.str(), input.env});
  return core::build_run_environment(facts, layers);
}

Task<> RunJob::resolve(Plan& plan) {
  auto& variables = plan.command.environment;
  for (const auto& [name, value] : plan.environment.plain) {
    variables.insert_or_assign(name, Secret{value});
  }
  hide_telling(plan.environment);
  std::vector<store::RunRedaction> noted;
  for (const core::SecretVariable& variable : plan.environment.secrets) {
    SecretRead read{.company_id = company_,
                    .secret_id = variable.ref.secret_id,
                    .target_type = variable.owner,
                    .target_id = variable.owner_id,
                    .config_path = variable.config_path};
    BERTH_CO_TRY(ResolvedSecret found, co_await tools_.secrets.resolve(call(), std::move(read)));
    hide(found.value);
    noted.push_back({.run_id = id_,
                     .secret_id = variable.ref.secret_id,
                     .secret_version = found.version,
                     .hidden_by = tools_.leases.node()});
    variables.insert_or_assign(variable.name, std::move(found.value));
  }
  // Recorded before the command gets them: a server that takes over the run then knows what to
  // hide, even if the secrets were rotated meanwhile.
  if (!noted.empty()) {
    BERTH_CO_DO(co_await tools_.services.store.write([&](store::Session& s) -> Result<> {
      BERTH_DO(expect_alive(s, tools_.leases.node()));
      for (const store::RunRedaction& value : noted) BERTH_DO(store::record_redaction(s, value));
      return {};
    }));
  }
  if (!agent_ || plan.environment.token_names.empty()) {
    plan.environment.token_names.clear();
    co_return Result<>{};
  }
  BERTH_CO_TRY(const Secret token, co_await tools_.tokens.make(run_.value, agent_->adapter_type));
  hide(token);
  for (const std::string& name : plan.environment.token_names) {
    variables.insert_or_assign(name, token.clone());
  }
  co_return Result<>{};
}

Task<> RunJob::recall() {
  BERTH_CO_TRY(const std::vector<Secret> given, co_await values_given_to(tools_.services, id_));
  for (const Secret& value : given) hide(value);
  if (environment_) {
    BERTH_CO_TRY(const core::RunInput input, co_await given_input());
    const Plan nothing{.command = {.exec_id = id_.str()}, .shown = {}};
    const places::Workspace nowhere{.cwd = "/"};
    BERTH_CO_TRY(const core::RunEnvironment known, environment_for(nothing, input, nowhere));
    hide_telling(known);
  }
  if (agent_) {
    BERTH_CO_TRY(const Secret token, co_await tools_.tokens.make(run_.value, agent_->adapter_type));
    hide(token);
  }
  co_return Result<>{};
}

void RunJob::hide_telling(const core::RunEnvironment& environment) {
  for (const auto& [name, value] : environment.plain) {
    if (core::looks_sensitive(name)) hide(Secret{value});
  }
}

}  // namespace berth::engine
