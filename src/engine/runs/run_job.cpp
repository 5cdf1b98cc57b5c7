#include "engine/runs/run_job.hpp"

#include "base/fault_point.hpp"
#include "base/json/peek.hpp"
#include "base/log.hpp"
#include "core/config/adapter_schema.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/environment_policy.hpp"
#include "core/config/linux_config.hpp"
#include "engine/leases/abilities.hpp"
#include "engine/retry.hpp"
#include "engine/runs/run_notes.hpp"
#include "engine/upkeep/node_life.hpp"
#include "store/agents.hpp"
#include "store/places/environments.hpp"
#include "store/places/leases.hpp"
#include "store/run_events.hpp"
#include "store/runs.hpp"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace berth::engine {
namespace {

using core::RunEvent;
using core::RunPhase;
using core::RunState;

// The log's disk may be full for a while; unread output remains with the keeper.
constexpr int follow_tries_max = 60;

// The server is stopping or has lost the run to another: do nothing more, and record nothing.
bool is_over_for_us(const Error& error) {
  return error.code == Errc::cancelled || error.code == Errc::node_fenced;
}

// Whether an active run reaches this state by this event.
bool follows(RunState state, RunEvent event) {
  return core::advance(RunState::starting, event) == state ||
         core::advance(RunState::running, event) == state;
}

// An error may quote what the command was given, such as its PATH.
std::string without_secrets(const std::string& text, const core::HiddenValues& hidden) {
  if (hidden.empty()) return text;
  const core::RedactionSet set{hidden.all()};
  core::Redactor redactor{set};
  std::string shown = redactor.push(text);
  shown += redactor.flush();
  return shown;
}

// Whether the keeper that limits the command's output looks at the disk of another machine.
bool is_elsewhere(const places::PlaceRef& place, core::DriverKind driver) {
  if (driver == core::DriverKind::sandbox) {
    return core::provider_of(place.config) != core::linux_provider;
  }
  return driver != core::DriverKind::local;
}

// The model that an agent's config names.
std::optional<std::string> model_of(const core::Agent& agent) {
  auto model = read_loosely<core::AgentSettings>(agent.adapter_config).model;
  return model && !model->empty() ? std::move(model) : std::nullopt;
}

std::string sentence_of(const core::Environment& environment) {
  return "environment \"" + environment.name + "\" (" + std::string{name_of(environment.driver)} +
         ")";
}

// Whether the sandbox-wide value is usable. If it is null or 0, the command's own value is used
// instead. Without control groups, the sandbox's CPU time covers only leftover background
// processes.
bool counts_for_whole(std::string_view name, const bj::value& whole, const bj::object& command) {
  if (!whole.is_int64()) return !whole.is_null();
  const auto own = peek<double>(command, name);
  if (!own) return true;
  if (name == "cpuMs") return static_cast<double>(whole.get_int64()) >= *own;
  return whole.get_int64() != 0;
}

// Clients of other makes look here for what an agent used, and not in its result.
void add_tokens(bj::object& usage, const core::AgentOutcome& outcome) {
  if (outcome.model) usage["model"] = *outcome.model;
  if (!outcome.usage) return;
  usage["inputTokens"] = outcome.usage->input_tokens;
  usage["cachedInputTokens"] = outcome.usage->cached_input_tokens;
  usage["outputTokens"] = outcome.usage->output_tokens;
}

}  // namespace

RunJob::RunJob(WorkTools& tools, ClaimedRun claimed)
    : tools_(tools),
      id_(claimed.run.value.id),
      company_(claimed.run.value.company_id),
      run_(std::move(claimed.run)),
      lease_(std::move(claimed.lease)),
      has_looked_(claimed.scene.has_value()),
      has_asked_(!claimed.scene.has_value()),
      exec_id_(id_.str()),
      cancelled_(run_.value.cancel_requested_at.has_value()),
      side_(tools.executor) {
  if (!claimed.scene) return;
  environment_ = std::move(claimed.scene->environment);
  agent_ = std::move(claimed.scene->agent);
}

core::Call RunJob::call() const {
  return {.who = {.kind = core::CallerKind::system, .company_id = company_}, .run_id = id_};
}

Task<> RunJob::carry() {
  const auto attempt = [this] { return work(); };
  Result<End> end = co_await retry_during_outage(tools_.executor, attempt);
  executes_ = false;
  BERTH_CO_DO(co_await side_.stop());
  if (!end) co_return std::unexpected(std::move(end).error());
  const auto record_end = [this, &end] { return finish(*end); };
  Result<> finished = co_await retry_during_outage(tools_.executor, record_end);
  if (!finished && finished.error().code == Errc::validation_failed) {
    // The same text would be rejected forever, and the run must end.
    log::warn("run.end_refused", {{"run", id_}, {"error", finished.error().message}});
    end->without_words = true;
    finished = co_await retry_during_outage(tools_.executor, record_end);
  }
  if (finished) {
    const auto give_back = [this] { return release(); };
    finished = co_await retry_during_outage(tools_.executor, give_back);
  }
  co_return finished;
}

Task<RunJob::End> RunJob::work() {
  if (!std::exchange(has_looked_, false)) BERTH_CO_DO(co_await reload());
  Result<> found = co_await find_place();
  if (!found) co_return place_missing(std::move(found).error());
  if (run_.value.status == RunState::starting) {
    if (lease_.value.status == core::LeaseState::acquiring && !cancelled_) {
      Result<> acquired = co_await acquire();
      if (!acquired) co_return setup_failed(std::move(acquired).error());
    }
    if (cancelled_) co_return cancelled();
    Result<> started = co_await start();
    if (!started) co_return setup_failed(std::move(started).error());
  }
  executes_ = true;
  if (start_) side_.start("start of run " + id_.str(), record_start_soon());
  if (agent_) side_.start("watch run " + id_.str(), watch());
  renew();
  if (cancelled_) cancel();
  Result<places::Ended> ended = co_await follow();
  executes_ = false;
  if (ended) co_return outcome_of_stopped(outcome_of(*ended));
  if (is_over_for_us(ended.error()) || is_outage(ended.error().code)) {
    co_return std::unexpected(std::move(ended).error());
  }
  co_return End{.event = RunEvent::interrupted, .error = std::move(ended).error()};
}

Result<RunJob::End> RunJob::setup_failed(Error error) const {
  if (is_over_for_us(error) || is_outage(error.code)) return std::unexpected(std::move(error));
  if (cancelled_) return cancelled();
  return End{.event = RunEvent::setup_failed, .error = std::move(error)};
}

Result<RunJob::End> RunJob::place_missing(Error error) const {
  if (run_.value.status == RunState::starting) return setup_failed(std::move(error));
  if (is_over_for_us(error) || is_outage(error.code)) return std::unexpected(std::move(error));
  return End{.event = RunEvent::interrupted, .error = std::move(error)};
}

RunJob::End RunJob::cancelled() {
  return {.event = RunEvent::cancelled,
          .error = Error{Errc::cancelled, "Cancelled by an operator"}};
}

Task<> RunJob::reload() {
  const core::LeaseId lease = lease_.value.id;
  const auto look = [&](store::Session& s) -> Result<> {
    const auto everywhere = core::Reach::everything();
    BERTH_TRY(run_, store::find_run(s, everywhere, id_));
    BERTH_TRY(lease_, store::find_lease_record(s, everywhere, lease));
    environment_.reset();
    agent_.reset();
    if (run_.value.environment_id) {
      auto found = store::find_environment(s, everywhere, *run_.value.environment_id);
      if (found) environment_ = std::move(found->value);
    }
    if (run_.value.agent_id) {
      auto found = store::find_agent(s, everywhere, *run_.value.agent_id);
      if (found) agent_ = std::move(found->value);
    }
    return {};
  };
  co_return co_await tools_.services.store.read(look);
}

Task<> RunJob::find_place() {
  BERTH_CO_TRY(where_, tools_.leases.place_of(lease_.value));
  if (lease_.value.status != core::LeaseState::acquiring) {
    BERTH_CO_TRY(place_, co_await tools_.leases.facts(lease_.value));
  }
  co_return Result<>{};
}

Result<places::Commands*> RunJob::commands() const {
  return need<places::Lack::commands>(*where_, *place_);
}

Task<> RunJob::acquire() {
  places::Callback callback{.candidates = tools_.options.api_candidates};
  const bool declined = environment_ && core::policy_in(*environment_).callback == "none";
  callback.required = agent_.has_value() && !declined;
  if (declined) callback.candidates.clear();
  const auto enter = [this](store::Session& s) {
    const Change next = [this](core::Run& run) {
      core::enter_phase(run.phases, RunPhase::realize, tools_.services.clock.now());
    };
    return record_in(s, next);
  };
  LeaseLifecycle::Ask ask{.callback = std::move(callback)};
  if (has_asked_) ask.before = LeaseLifecycle::Ask::Before::maybe;
  Result<LeaseLifecycle::Held> held = co_await tools_.leases.acquire(lease_, std::move(ask), enter);
  if (!held) {
    Error error = std::move(held).error();
    has_asked_ = has_asked_ || !LeaseLifecycle::made_none(error.code);
    if (!is_over_for_us(error) && !is_outage(error.code) && environment_) {
      error.message =
          "Failed to acquire lease for " + sentence_of(*environment_) + ": " + error.message;
    }
    co_return std::unexpected(std::move(error));
  }
  lease_ = std::move(held->lease);
  place_ = std::move(held->facts);
  co_return Result<>{};
}

Task<> RunJob::start() {
  if (!environment_) {
    co_return fail(Errc::environment_not_found, "The environment of run " + id_.str() + " is gone",
                   "start the run again in another environment");
  }
  BERTH_CO_DO(co_await expect_room_at_home());
  BERTH_CO_TRY(start_, co_await launch(id_.str(), SessionUse::resume));
  co_return Result<>{};
}

Task<RunJob::Start> RunJob::launch(std::string exec_id, SessionUse use) {
  BERTH_CO_TRY(core::RunInput input, co_await given_input());
  BERTH_CO_TRY(Plan ready, co_await plan(input, use));
  ready.command.exec_id = std::move(exec_id);
  const Result<places::Commands*> inside = commands();
  Result<places::Workspace> workspace = inside
                                            ? co_await (*inside)->realize(*place_, ready.shown.cwd)
                                            : std::unexpected(inside.error());
  if (!workspace) {
    Error error = std::move(workspace).error();
    if (error.code != Errc::cancelled) {
      error.message =
          "Failed to realize workspace for " + sentence_of(*environment_) + ": " + error.message;
    }
    co_return std::unexpected(std::move(error));
  }
  fault_point("realize.acted");
  ready.command.cwd = workspace->cwd;
  if (carries_session()) BERTH_CO_DO(co_await furnish(*workspace, ready));
  BERTH_CO_TRY(ready.environment, environment_for(ready, input, *workspace));
  BERTH_CO_DO(co_await resolve(ready));
  if (cancelled_) co_return fail(Errc::conflict, "The run was cancelled before it started");

  bj::object shown{{"argv", encode(ready.shown.argv)},
                   {"cwd", ready.command.cwd},
                   {"env", core::shown_environment(ready.environment)}};
  show_prompt(ready, shown);
  for (const Secret& value : hidden_.all()) ready.command.secrets.push_back(value.clone());
  fault_point("execute.intended");
  const Result<places::Started> started = co_await (*inside)->start(*place_, ready.command);
  if (!started) co_return std::unexpected(explain_start(started.error()));
  fault_point("execute.acted");
  co_return Start{.shown = std::move(ready.shown),
                  .resumed_session = std::move(ready.resumed_session),
                  .command = *started,
                  .invocation = std::move(shown),
                  .noticed_at = tools_.services.clock.now(),
                  .warnings = std::move(ready.warnings)};
}

Task<std::int64_t> RunJob::known_agent_events() {
  constexpr std::int64_t batch = 1000;
  std::int64_t known = 0;
  std::int64_t seq = 0;
  while (true) {
    BERTH_CO_TRY(const auto events, co_await tools_.services.store.read([&](store::Session& s) {
      return store::run_events_after(s, id_, seq, batch);
    }));
    for (const core::RunEventRecord& event : events) {
      seq = event.seq;
      known += event.event_type.starts_with("agent.") ? 1 : 0;
    }
    if (events.size() < static_cast<std::size_t>(batch)) co_return known;
  }
}

Task<places::Ended> RunJob::follow() {
  for (int tries = 0;; ++tries) {
    Result<places::Ended> ended = co_await follow_once();
    if (ended) co_return ended;
    const Errc why = ended.error().code;
    const bool may_pass = is_outage(why) || why == Errc::io_failed || why == Errc::disk_full;
    if (!may_pass || tries == follow_tries_max) co_return ended;
    log::warn("run.follow_failed", {{"run", id_}, {"error", ended.error().message}});
    BERTH_CO_DO(co_await pause_for(tools_.executor, pause_after(tries)));
  }
}

Task<places::Ended> RunJob::follow_once() {
  using namespace asio::experimental::awaitable_operators;
  const auto adapter = agent_ ? agent_->adapter_type : core::AdapterType::process;
  std::int64_t known = 0;
  if (adapter != core::AdapterType::process) {
    BERTH_CO_TRY(known, co_await known_agent_events());
  }
  // This process has not seen the secret values of a run that it took over.
  if (hidden_.empty() && run_.value.status == RunState::running) BERTH_CO_DO(co_await recall());
  BERTH_CO_TRY(auto before, co_await session_before());
  core::AgentOutput reader{adapter, std::move(before), agent_ ? model_of(*agent_) : std::nullopt};
  output_ = std::make_shared<RunOutput>(tools_.services, tools_.logs, run_.value,
                                        tools_.leases.node(), std::move(reader), known);
  for (const Secret& value : hidden_.all()) output_->hide(value);
  if (is_elsewhere(*place_, lease_.value.driver)) output_->leave_disk_reserve();
  exec_id_ = id_.str();
  BERTH_CO_TRY(places::Commands* const inside, commands());
  BERTH_CO_TRY(places::Ended ended, co_await inside->follow(*place_, exec_id_, 0, *output_));
  if (lost_session(ended)) {
    BERTH_CO_TRY(ended, co_await follow_again(std::move(ended)));
  }
  if (carries_session()) BERTH_CO_DO(co_await fetch_session());
  BERTH_CO_DO(co_await note_denied(ended));
  BERTH_CO_DO(co_await measure_home());
  // The usage is queried while the log is flushed to disk.
  const auto [kept, counted] = co_await (output_->finish() && count_usage());
  BERTH_CO_DO(kept);
  BERTH_CO_DO(counted);
  co_return ended;
}

Task<> RunJob::count_usage() {
  // A sandbox is measured as a whole, including background processes that the command left.
  if (lease_.value.driver != core::DriverKind::sandbox) co_return Result<>{};
  BERTH_CO_TRY(const auto used, co_await tools_.leases.measure(lease_.value, *place_));
  usage_ = used.value_or(bj::object{});
  co_return Result<>{};
}

Task<> RunJob::finish(End end) {
  fault_point("execute.ended");
  if (end.error) {  // text from a driver, a host or the agent
    end.error->message = core::storable(without_secrets(end.error->message, hidden_));
    end.error->remedy = core::storable(without_secrets(end.error->remedy, hidden_));
  }
  std::optional<bj::object> usage;
  if (end.command) {
    usage = end.command->usage;
    if (end.command->bytes_lost > 0) (*usage)["bytesLost"] = end.command->bytes_lost;
    if (end.command->bytes_over_limit > 0) {
      (*usage)["bytesOverLimit"] = end.command->bytes_over_limit;
    }
    for (const auto& [name, value] : usage_) {
      if (counts_for_whole(name, value, *usage)) (*usage)[name] = value;
    }
  }
  const auto change = [&](core::Run& run) {
    if (end.error) {
      run.error = end.error->message;
      if (!end.error->remedy.empty()) *run.error += ". Remedy: " + end.error->remedy;
      run.error_code = name_of(end.error->code);
    }
    if (end.command) {
      run.exit_code = end.command->exit_code;
      if (!end.without_words) run.signal = end.command->signal;
      run.usage_json = *usage;
    }
    if (output_) {
      const RunOutput::Facts& facts = output_->facts();
      run.log_bytes = facts.log_bytes;
      run.last_output_seq = facts.last_seq;
      run.last_output_at = facts.last_output_at;
      if (!facts.sha256.empty()) run.log_sha256 = facts.sha256;
      run.stdout_excerpt = core::storable(facts.stdout_excerpt);
      run.stderr_excerpt = core::storable(facts.stderr_excerpt);
      const core::AgentOutcome& outcome = output_->agent_outcome();
      run.session_id_after = output_->session();
      if (!end.without_words && agent_ && agent_->adapter_type != core::AdapterType::process) {
        run.result_json = encode(outcome).as_object();
        if (run.usage_json) add_tokens(*run.usage_json, outcome);
      }
    }
    core::enter_phase(run.phases, RunPhase::release, tools_.services.clock.now());
  };
  const auto save = [&](store::Session& s) -> Result<LeaseLifecycle::Row> {
    BERTH_TRY(auto run, our_run(s));
    if (start_ && run.value.status == RunState::starting) {
      BERTH_TRY(run, record_start(s, std::move(run)));
    }
    BERTH_TRY(const bool is_news, move_in(s, std::move(run), end.event, change,
                                          end.error ? end.error->message : "The run is over"));
    BERTH_TRY(LeaseLifecycle::Row row,
              store::find_lease_record(s, core::Reach::everything(), lease_.value.id));
    if (is_news) BERTH_DO(record_home(s));
    if (!is_news || core::is_final(row.value.status)) return row;
    if (usage && row.value.metadata) (*row.value.metadata)["usage"] = *usage;
    return tools_.leases.begin_release(s, std::move(row), core::release_event(run_.value.status));
  };
  BERTH_CO_TRY(lease_, co_await tools_.services.store.write(save));
  fault_point("finish.recorded");
  tools_.quotas.add(company_, run_.value.log_bytes);
  if (home_ && home_size_) tools_.quotas.add(company_, home_size_->bytes - home_->bytes);
  tools_.services.feed.changed(company_);
  tools_.services.feed.changed(id_);
  co_return Result<>{};
}

Task<> RunJob::release() {
  if (lease_.value.status == core::LeaseState::retained) {
    co_return place_ ? co_await tools_.leases.keep(lease_.value, *place_) : Result<>{};
  }
  if (core::is_final(lease_.value.status)) co_return Result<>{};
  BERTH_CO_TRY(lease_, co_await tools_.leases.settle(lease_));
  tools_.services.feed.changed(id_);
  co_return Result<>{};
}

Result<core::Stored<core::Run>> RunJob::our_run(store::Session& session) const {
  BERTH_DO(expect_alive(session, tools_.leases.node()));
  BERTH_TRY(auto run, store::find_run(session, core::Reach::everything(), id_));
  if (run.value.node_id == tools_.leases.node()) return run;
  return fail(Errc::node_fenced, "Run " + id_.str() + " is with another server now");
}

Result<> RunJob::record_in(store::Session& session, const Change& change) {
  BERTH_TRY(auto run, our_run(session));
  change(run.value);
  BERTH_TRY(run_, store::update_run(session, std::move(run), tools_.services.clock.now()));
  return {};
}

Result<bool> RunJob::move_in(store::Session& session, core::Stored<core::Run> run, RunEvent event,
                             const Change& change, const std::string& message) {
  if (follows(run.value.status, event)) {
    run_ = std::move(run);
    return false;
  }
  const Time now = tools_.services.clock.now();
  change(run.value);
  BERTH_TRY(run_, store::move_run(session, std::move(run), event, now));
  BERTH_DO(note(session, run_.value, {.message = message}, now));
  return true;
}

void RunJob::hide(const Secret& value) {
  if (hidden_.add(value) && output_) output_->hide(value);
}

void RunJob::cancel() {
  cancelled_ = true;
  if (!executes_ || cancelling_) return;
  cancelling_ = true;
  side_.start("cancel run " + id_.str(), cancel_command());
}

Task<> RunJob::cancel_command() {
  const std::int64_t grace_ms =
      run_.value.command ? run_.value.command->grace_ms : core::RunCommand{}.grace_ms;
  BERTH_CO_TRY(places::Commands* const inside, commands());
  const Result<> done = co_await inside->cancel(*place_, exec_id_, grace_ms);
  cancelling_ = false;  // a failed attempt may be repeated
  co_return done;
}

void RunJob::renew() {
  if (executes_) side_.start("renew run " + id_.str(), renew_command());
}

Task<> RunJob::renew_command() {
  // By the time this completes, another attempt to follow may have its own output.
  const std::shared_ptr<RunOutput> output = output_;
  BERTH_CO_TRY(places::Commands* const inside, commands());
  BERTH_CO_DO(co_await inside->renew(*place_, tools_.options.hold_ms));
  co_return output ? co_await output->tell() : Result<>{};
}

Task<> RunJob::send(places::Input input) {
  if (!executes_) {
    co_return fail(Errc::run_not_running, "Run " + id_.str() + " does not execute a command now",
                   "wait until its status is running");
  }
  BERTH_CO_TRY(places::Commands* const inside, commands());
  co_return co_await inside->send(*place_, exec_id_, std::move(input));
}

}  // namespace berth::engine
