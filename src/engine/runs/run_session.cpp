// What an agent continues with: its home, and the session that its program keeps there.
#include "base/fault_point.hpp"
#include "base/id.hpp"
#include "base/json/peek.hpp"
#include "core/admission.hpp"
#include "core/config/adapter_schema.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "engine/accounts/agent_homes.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/runs/run_job.hpp"
#include "engine/runs/run_notes.hpp"
#include "store/agent_homes.hpp"

namespace berth::engine {
namespace {

// Folders that can be in a PATH. An environment's metadata is not validated when saved; invalid
// folders are ignored.
std::vector<std::string> folders_at(const bj::object& config, std::string_view key) {
  std::vector<std::string> out;
  const bj::array* list = array_in(config, key);
  if (list == nullptr) return out;
  for (const bj::value& one : *list) {
    const bool is_folder = one.is_string() && one.get_string().starts_with("/") &&
                           one.get_string().find(':') == bj::string::npos;
    if (is_folder) out.emplace_back(one.get_string());
  }
  return out;
}

// Whether configured variables move the program's sessions elsewhere.
bool moves_sessions(const core::Agent& agent, const core::Environment& environment) {
  const char* name =
      agent.adapter_type == core::AdapterType::claude_local ? "CLAUDE_CONFIG_DIR" : "CODEX_HOME";
  const auto env = read_loosely<core::AgentSettings>(agent.adapter_config).env;
  const bool by_agent = env && (env->contains(name) || env->contains("HOME"));
  return by_agent || environment.env_vars.contains(name) || environment.env_vars.contains("HOME");
}

// Whether commands there see the home on this server's disk.
bool shows_home(const core::Environment& environment) {
  return environment.driver == core::DriverKind::local ||
         (environment.driver == core::DriverKind::sandbox &&
          core::provider_of(environment.config) == core::linux_provider);
}

}  // namespace

std::vector<std::string> RunJob::path_requests(const std::optional<std::string>& home) const {
  std::vector<std::string> folders = folders_at(agent_->adapter_config, "path");
  if (environment_->metadata) {
    const std::vector<std::string> places = folders_at(*environment_->metadata, "path");
    folders.insert(folders.end(), places.begin(), places.end());
  }
  if (home) folders.push_back(*home + "/.local/bin");
  return folders;
}

Task<> RunJob::find_session(Plan& plan) {
  const std::optional<core::AgentHomeId>& id = lease_.value.teardown.home_id;
  if (!id || core::begins_fresh(run_.value)) co_return Result<>{};
  using Homes = std::vector<core::AgentHome>;
  BERTH_CO_TRY(const Homes homes, co_await tools_.services.store.read([&](store::Session& s) {
    return store::homes_of_agent(s, agent_->id, environment_->id);
  }));
  const auto own = std::ranges::find(homes, *id, &core::AgentHome::id);
  const auto has_session = [&](const core::AgentHome& home) {
    return home.session_id && home.session_adapter == agent_->adapter_type &&
           is_uuid(*home.session_id);
  };
  if (own == homes.end() || !has_session(*own)) {
    const auto other = std::ranges::find_if(homes, has_session);
    if (other != homes.end()) {
      plan.warnings.push_back("Session " + *other->session_id +
                              " of the agent is on another server or account; this run begins a "
                              "new one");
    }
    co_return Result<>{};
  }
  if (carries_session()) {
    BERTH_CO_TRY(const auto kept, co_await tools_.homes->kept_session(*id, *own->session_id));
    if (kept) plan.resumed_session = own->session_id;
    if (!kept) {
      plan.warnings.push_back("The file of session " + *own->session_id +
                              " was not kept; this run begins a new one");
    }
    co_return Result<>{};
  }
  const bool can_look = tools_.homes != nullptr && is_on_disk(*own, tools_.homes->place()) &&
                        shows_home(*environment_) && !moves_sessions(*agent_, *environment_);
  if (can_look) {
    BERTH_CO_TRY(const bool is_there,
                 co_await tools_.homes->holds_session(*id, agent_->adapter_type, *own->session_id));
    if (!is_there) {
      plan.warnings.push_back("The file of session " + *own->session_id +
                              " is not in the agent's home any more; this run begins a new one");
      co_return Result<>{};
    }
  }
  plan.resumed_session = own->session_id;
  co_return Result<>{};
}

bool RunJob::lost_session(const places::Ended& ended) const {
  const std::optional<std::string>& resumed =
      start_ ? start_->resumed_session : run_.value.session_id_before;
  const bool has_failed =
      ended.outcome == places::Outcome::exited && ended.exit_code.value_or(0) != 0;
  if (!agent_ || !environment_ || !resumed || !has_failed || output_->session()) return false;
  const std::string& said = output_->facts().stderr_excerpt;
  if (said.contains("No conversation found with session ID: " + *resumed)) return true;
  // Codex reports this for a thread that it does not find, and for one whose file it cannot read.
  return said.contains("thread/resume failed") && said.contains(*resumed) &&
         !said.contains("active writer");
}

Task<places::Ended> RunJob::follow_again(places::Ended ended) {
  if (cancelled_ || stopped_for_) co_return ended;
  begun_again_ = true;
  const std::string lost =
      (start_ ? start_->resumed_session : run_.value.session_id_before).value();
  output_->begin_again("The program cannot resume session " + lost +
                       "; it is started once more, with a new session");
  fault_point("session.lost");
  const std::string again = id_.str() + "-again";
  const Result<Start> launched = co_await launch(again, SessionUse::fresh);
  if (!launched) {
    if (cancelled_) co_return ended;
    co_return std::unexpected(launched.error());
  }
  fault_point("session.begun_again");
  exec_id_ = again;
  if (cancelled_) cancel();
  BERTH_CO_TRY(places::Commands* const inside, commands());
  co_return co_await inside->follow(*place_, exec_id_, 0, *output_);
}

Task<HomeLimits> RunJob::home_limits() {
  BERTH_CO_TRY(const InstanceSettings settings, co_await tools_.services.store.read(read_settings));
  co_return HomeLimits{.bytes_max = settings.agent_home_bytes_max,
                       .files_max = settings.agent_home_files_max};
}

std::optional<Error> RunJob::too_full(const HomeSize& size, const HomeLimits& limits) const {
  if (size.hidden && (limits.bytes_max > 0 || limits.files_max > 0)) {
    return Error{Errc::quota_exceeded,
                 "The home of agent " + in_quotes(agent_->name) + " in environment " +
                     in_quotes(environment_->name) + " cannot be measured: " + *size.hidden,
                 "remove that folder, or empty the home with 'berth agent reset " + agent_->name +
                     " -e " + environment_->name + "'"};
  }
  const bool by_bytes = limits.bytes_max > 0 && size.bytes > limits.bytes_max;
  const bool by_files = limits.files_max > 0 && size.files > limits.files_max;
  if (!by_bytes && !by_files) return std::nullopt;
  const std::string has = by_bytes ? size_text(size.bytes) : std::to_string(size.files) + " files";
  const std::string most =
      by_bytes ? size_text(limits.bytes_max) : std::to_string(limits.files_max) + " files";
  return Error{Errc::quota_exceeded,
               "The home of agent " + in_quotes(agent_->name) + " in environment " +
                   in_quotes(environment_->name) + " is full: it holds " + has +
                   ", and the limit is " + most,
               "empty it with 'berth agent reset " + agent_->name + " -e " + environment_->name +
                   "', or raise " + (by_bytes ? "agentHomeBytesMax" : "agentHomeFilesMax") +
                   " in the settings of the instance"};
}

Task<> RunJob::find_home() {
  const std::optional<core::AgentHomeId>& id = lease_.value.teardown.home_id;
  if (!id || !agent_) co_return Result<>{};
  BERTH_CO_TRY(home_, co_await tools_.services.store.read(
                          [&](store::Session& s) { return store::find_home(s, *id); }));
  const bool is_here = home_ && tools_.homes != nullptr &&
                       is_on_disk(*home_, tools_.homes->place()) && shows_home(*environment_);
  if (!is_here) co_return Result<>{};
  home_bytes_before_ = home_->bytes;
  BERTH_CO_TRY(home_limits_, co_await home_limits());
  co_return Result<>{};
}

Task<> RunJob::expect_room_at_home() {
  BERTH_CO_DO(co_await find_home());
  if (!home_limits_) co_return Result<>{};
  BERTH_CO_DO(tools_.logs.reserve().expect_room_for_agents());
  BERTH_CO_TRY(const HomeSize size,
               co_await tools_.homes->measure(home_->id, home_limits_->files_counted()));
  home_bytes_before_ = size.bytes;
  home_looked_at_ = tools_.services.clock.steady();
  if (auto full = too_full(size, *home_limits_)) co_return std::unexpected(*std::move(full));
  co_return Result<>{};
}

Task<> RunJob::measure_home() {
  const std::optional<core::AgentHomeId>& id = lease_.value.teardown.home_id;
  if (!id || !home_limits_) co_return Result<>{};
  BERTH_CO_TRY(home_size_, co_await tools_.homes->measure(*id, home_limits_->files_counted()));
  co_return Result<>{};
}

Result<> RunJob::record_home(store::Session& session) const {
  const Time now = tools_.services.clock.now();
  for (const bj::object& entry : denied_) {
    BERTH_DO(note(session, run_.value,
                  {.type = "sandbox.egress_denied",
                   .message = denied_text(entry),
                   .level = core::EventLevel::warn,
                   .payload = entry},
                  now));
  }
  const std::optional<core::AgentHomeId>& id = lease_.value.teardown.home_id;
  if (!id) return {};
  if (home_size_) {
    BERTH_DO(store::set_home_size(session, *id, home_size_->bytes, home_size_->files, now));
  }
  if (!output_ || !agent_) return {};
  store::HomeSession after;
  if (output_->session()) after = {.id = output_->session(), .adapter = agent_->adapter_type};
  // A run that failed before it named a session leaves the previous one unchanged.
  if (!after.id && !begun_again_) return {};
  if (fetch_note_) {
    BERTH_DO(
        note(session, run_.value, {.message = *fetch_note_, .level = core::EventLevel::warn}, now));
  }
  return store::set_home_session(session, *id, after, now);
}

}  // namespace berth::engine
