// Sessions in places that keep nothing between runs: commands, which every provider supports, copy
// the session file there and back.
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "engine/runs/run_job.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t control_timeout_ms = 60'000;
constexpr int exit_no_file = 3;
constexpr int exit_too_large = 4;

// $1 home, $2 scratch, $3 file below the home, or empty.
constexpr const char* furnish_script = R"sh(
umask 077
mkdir -p "$1" "$2" || exit 1
[ -n "$3" ] || exit 0
mkdir -p "$(dirname "$1/$3")" && cat > "$1/$3")sh";

// $1 home, $2 folder below it, $3 session, $4 bytes.
constexpr const char* fetch_script = R"sh(
cd "$1" || exit 3
file=$(find "$2" -type f -name "*$3.jsonl" 2>/dev/null | head -n 1)
[ -n "$file" ] || exit 3
size=$(wc -c < "$file")
[ "$size" -le "$4" ] || exit 4
printf '%s\n' "$file"
cat "$file")sh";

class Collected final : public places::OutputTaker {
 public:
  Task<> take(std::span<const places::OutputPiece> pieces) override {
    for (const places::OutputPiece& piece : pieces) {
      if (piece.kind != places::OutputKind::out) continue;
      const std::size_t room = session_bytes_max * 2 - std::min(session_bytes_max * 2, text.size());
      text += piece.bytes.substr(0, room);
    }
    co_return Result<>{};
  }

  std::string text;
};

// The path comes from the place and is used in the next one, so it is checked.
bool is_session_path(std::string_view path, std::string_view folder, const std::string& session) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"._/-"}.contains(c);
  };
  return path.starts_with(folder) && path.ends_with(session + ".jsonl") && !path.contains("..") &&
         path.size() < 1024 && std::ranges::all_of(path, is_plain);
}

std::string sessions_of(core::AdapterType adapter) {
  return adapter == core::AdapterType::claude_local ? ".claude/projects" : ".codex/sessions";
}

// Claude Code looks for a session in a folder named after its working directory, which differs in
// each sandbox of some providers.
std::string claude_folder(std::string cwd) {
  std::ranges::replace_if(
      cwd,
      [](char c) {
        return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
      },
      '-');
  return ".claude/projects/" + cwd;
}

}  // namespace

bool RunJob::carries_session() const {
  if (!agent_ || !environment_ || tools_.homes == nullptr) return false;
  if (!core::keeps_sessions(agent_->adapter_type)) return false;
  const bool is_sandbox = environment_->driver == core::DriverKind::sandbox &&
                          core::provider_of(environment_->config) != core::linux_provider;
  return is_sandbox || environment_->driver == core::DriverKind::plugin;
}

Task<std::string> RunJob::control(const std::string& name, std::vector<std::string> argv,
                                  std::optional<std::string> input) {
  places::Command command{.exec_id = id_.str() + "-" + name,
                          .argv = std::move(argv),
                          .cwd = carried_cwd_,
                          .timeout_ms = control_timeout_ms};
  command.environment.insert_or_assign("PATH", Secret{core::path_with({}, std::nullopt)});
  if (input) command.input = places::StdinBytes{Secret{*input}};
  BERTH_CO_TRY(places::Commands* const inside, commands());
  BERTH_CO_DO(co_await inside->start(*place_, command));
  Collected said;
  BERTH_CO_TRY(const places::Ended ended,
               co_await inside->follow(*place_, command.exec_id, 0, said));
  if (ended.outcome == places::Outcome::exited && ended.exit_code == 0) {
    co_return std::move(said.text);
  }
  if (ended.exit_code == exit_no_file) co_return fail(Errc::file_not_found, "no such session file");
  if (ended.exit_code == exit_too_large) co_return fail(Errc::body_too_large, "it is too large");
  co_return fail(Errc::command_failed, "the command '" + name + "' has failed in the sandbox");
}

Task<> RunJob::furnish(places::Workspace& workspace, Plan& plan) {
  carried_cwd_ = workspace.cwd;
  carried_home_ = workspace.home.value_or(workspace.cwd + "/.berth/home");
  const std::string scratch = workspace.scratch.value_or(workspace.cwd + "/.berth/tmp");
  std::string file;
  std::optional<std::string> bytes;
  if (plan.resumed_session) {
    BERTH_CO_TRY(const auto kept, co_await tools_.homes->kept_session(
                                      *lease_.value.teardown.home_id, *plan.resumed_session));
    if (kept) {
      const bool is_claude = agent_->adapter_type == core::AdapterType::claude_local;
      file = is_claude ? claude_folder(plan.shown.cwd.value_or(workspace.cwd)) + "/" +
                             *plan.resumed_session + ".jsonl"
                       : kept->path;
      bytes = kept->bytes;
    }
  }
  const Result<std::string> made = co_await control(
      plan.command.exec_id == id_.str() ? "home" : "home-again",
      {"/bin/sh", "-c", furnish_script, "sh", carried_home_, scratch, file}, std::move(bytes));
  if (!made) {
    co_return fail(Errc::workspace_realization_failed,
                   "No home could be made for the agent in " + workspace.cwd +
                       " of the sandbox: " + made.error().message,
                   "let the sandbox's user write to its working directory");
  }
  workspace.home = carried_home_;
  workspace.scratch = scratch;
  if (!workspace.api_url) {
    plan.warnings.emplace_back(
        "The sandbox has no way to the API of this server: the agent has neither BERTH_API_URL "
        "nor a token");
  }
  co_return Result<>{};
}

Task<> RunJob::fetch_session() {
  if (!output_->session() || carried_cwd_.empty()) co_return Result<>{};
  const std::string session = *output_->session();
  const std::string folder = sessions_of(agent_->adapter_type);
  const Result<std::string> fetched =
      co_await control("session",
                       {"/bin/sh", "-c", fetch_script, "sh", carried_home_, folder, session,
                        std::to_string(session_bytes_max)},
                       std::nullopt);
  if (!fetched) {
    if (fetched.error().code == Errc::cancelled) co_return std::unexpected(fetched.error());
    fetch_note_ = "The file of session " + session + " could not be kept (" +
                  fetched.error().message + "); the next turn begins a new one";
    co_return Result<>{};
  }
  const std::size_t end = fetched->find('\n');
  const std::string path = fetched->substr(0, end);
  if (end == std::string::npos || !is_session_path(path, folder, session)) {
    fetch_note_ = "The sandbox has named no file for session " + session;
    co_return Result<>{};
  }
  co_return co_await tools_.homes->keep_session(*lease_.value.teardown.home_id, session,
                                                {.path = path, .bytes = fetched->substr(end + 1)});
}

}  // namespace berth::engine
