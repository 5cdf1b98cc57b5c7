#include "places/remote/remote_place.hpp"

#include "base/async/condition.hpp"
#include "base/json/peek.hpp"
#include "base/remove_tree.hpp"
#include "places/remote/exec_spool.hpp"
#include "places/remote/remote_config.hpp"
#include "places/remote/sandbox_files.hpp"
#include "places/remote/site.hpp"

#include <algorithm>

namespace berth::places::remote {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds exec_margin = 30s;
constexpr std::chrono::milliseconds longest_command = 24h;  // for a command without a time limit
constexpr std::chrono::milliseconds kill_wait = 5s;
// Fits into a worker's line even when every byte is escaped.
constexpr std::size_t input_bytes_max = std::size_t{2} << 20;
// Every process of a command has it in its environment, so that a signal reaches them all.
constexpr std::string_view mark_variable = "BERTH_EXEC_MARK";

constexpr std::string_view signal_script =
    "for p in /proc/[0-9]*; do "
    "if [ \"${p#/proc/}\" != \"$$\" ] && tr '\\0' '\\n' <\"$p/environ\" 2>/dev/null | "
    "grep -qxF -- \"$1\"; then kill -\"$2\" \"${p#/proc/}\" 2>/dev/null; fi; done; exit 0";

// A folder that every sandbox has and where no command starts by default.
constexpr std::string_view cwd_trial_folder = "/dev";
// Prints "ignored" only if the folder could be entered and is not the current one. Providers that
// set the folder themselves may name it by another path.
constexpr std::string_view cwd_trial_script =
    "a=$(pwd -P) && cd -P -- \"$1\" && b=$(pwd -P) && "
    "if [ \"$a\" = \"$b\" ]; then echo kept; else echo ignored; fi";
constexpr std::chrono::milliseconds cwd_trial_time = 10s;
// The command's arguments become the shell's own arguments, so that none of them is ever quoted.
constexpr std::string_view cwd_script = "cd -- \"$1\" || exit 126; shift; exec \"$@\"";

// For a place that sets its own variables: ours must not replace its PATH and HOME.
constexpr std::string_view own_path = "";
// After a command's time limit, for a provider that enforces it to report so.
constexpr std::chrono::milliseconds own_limit_slack = 1s;

struct Limit {
  std::chrono::milliseconds after;
  std::int64_t grace_ms;
};

// Ends a command like a cancel, because not every provider enforces the given limit.
template <class Running>
Task<> end_at_limit(RemotePlace& provider, std::shared_ptr<Running> running, PlaceRef lease,
                    std::string exec_id, Limit limit) {
  const auto over = [&] { return running->finished(); };
  const auto begins = [&] { return !running->awaits_input() || running->finished(); };
  BERTH_CO_DO(co_await running->waiters().wait_for(begins));
  BERTH_CO_DO(co_await running->waiters().wait_for(
      over, std::chrono::steady_clock::now() + limit.after + own_limit_slack));
  if (over()) co_return Result<>{};
  running->timed_out = true;
  co_return co_await provider.cancel(lease, exec_id, limit.grace_ms);
}

bool is_file_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= 200 && text != "." && text != ".." &&
         std::ranges::all_of(text, fits);
}

// FNV-1a: cheap enough for every byte that streams by.
std::uint64_t hash_on(std::uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

Result<> give_input(bj::object& params, std::string_view bytes) {
  // A provider that gets an empty string writes it to a command that may have ended already.
  if (bytes.empty()) return {};
  if (!is_utf8(bytes)) {
    return fail(Errc::execution_unsupported,
                "standard input that is not UTF-8 cannot be passed to a plugin's command");
  }
  params["stdin"] = bj::string(bytes);
  return {};
}

std::string_view shell_of(const bj::value& lease) {
  const auto named = text_in(lease.at("metadata").get_object(), "shellCommand");
  return named == "bash" ? "bash" : "sh";
}

// Runs the same command through a shell that enters its folder first.
void enter_cwd(bj::object& params, const bj::value& lease) {
  bj::array words{"-c", cwd_script, "berth", params.at("cwd"), params.at("command")};
  for (bj::value& word : params.at("args").as_array()) words.push_back(std::move(word));
  params["command"] = shell_of(lease);
  params["args"] = std::move(words);
}

Result<bj::object> parameters_of(const Command& command, const std::string& mark) {
  bj::object env{{mark_variable, mark}};
  for (const auto& [name, value] : command.environment) {
    if (!is_utf8(value.reveal())) {
      return fail(Errc::variable_name_invalid,
                  "variable " + name + " is not UTF-8, so it cannot be passed to a plugin");
    }
    env[name] = bj::string(value.reveal());
  }
  bj::array args;
  for (const std::string& word : command.argv) args.emplace_back(as_utf8(word));
  if (args.empty()) return fail(Errc::command_not_found, "the command is empty");
  bj::object params{{"command", args.front()}, {"env", std::move(env)}, {"bypassSession", false}};
  args.erase(args.begin());
  params["args"] = std::move(args);
  if (!command.cwd.empty()) params["cwd"] = as_utf8(command.cwd);
  if (command.timeout_ms) params["timeoutMs"] = *command.timeout_ms;
  if (const auto* bytes = std::get_if<StdinBytes>(&command.input)) {
    BERTH_DO(give_input(params, bytes->bytes.reveal()));
  }
  return params;
}

}  // namespace

// A running command: its streamed output goes to its spool.
class RemotePlace::Running final : public LiveOutput {
 public:
  Running(asio::any_io_executor executor, const Clock& clock, ExecSpool made, std::string its_mark,
          std::shared_ptr<Supervisor> plugin)
      : mark(std::move(its_mark)),
        plugin_(std::move(plugin)),
        spool_(std::move(made)),
        clock_(clock),
        out_{.cleaner = GivenSecrets::Stream{plugin_->given()}},
        err_{.cleaner = GivenSecrets::Stream{plugin_->given()}},
        waiters_(executor) {}

  void take(OutputKind kind, std::string_view text) override {
    Streamed& streamed = kind == OutputKind::out ? out_ : err_;
    streamed.size += text.size();
    streamed.hash = hash_on(streamed.hash, text);
    append(kind, streamed.cleaner.push(text));
  }
  // Stores the part of the final text that was not streamed before.
  void take_rest(OutputKind kind, std::string_view text) {
    Streamed& streamed = kind == OutputKind::out ? out_ : err_;
    const bool begins_so = text.size() >= streamed.size &&
                           hash_on(no_bytes, text.substr(0, streamed.size)) == streamed.hash;
    append(kind, streamed.cleaner.push(begins_so ? text.substr(streamed.size) : text));
  }
  void note(std::string_view text) { append(OutputKind::note, plugin_->given().clean(text)); }

  // The first end counts; later worker messages are ignored.
  void finish(SpoolEnd end) {
    if (finished_) return;
    append(OutputKind::out, out_.cleaner.flush());
    append(OutputKind::err, err_.cleaner.flush());
    finished_ = true;
    end.ended.ended_at = clock_.now();
    if (const Result<> written = spool_.finish(std::move(end)); !written)
      failure_ = written.error();
    waiters_.notify();
  }
  bool finished() const { return finished_; }
  const std::optional<Error>& failure() const { return failure_; }
  Condition& waiters() { return waiters_; }
  std::uint64_t version() const { return version_; }
  bool cancelled = false;
  bool timed_out = false;
  const std::string mark;
  // A command that we ended has our outcome, whatever the provider reports. A limit that is reached
  // is followed by a cancel.
  Outcome outcome_or(Outcome other) const {
    if (timed_out) return Outcome::timed_out;
    return cancelled ? Outcome::stopped : other;
  }

  // The protocol takes the whole input with the call, so a command starts only when its input has
  // ended.
  void await_input() { input_.emplace(); }
  bool awaits_input() const { return input_ && !input_ended_; }
  Result<> take_input(std::string_view bytes) {
    if (!awaits_input()) return fail(Errc::conflict, "the command's input has ended");
    if (input_->size() + bytes.size() > input_bytes_max) {
      return fail(Errc::execution_unsupported,
                  "a command in a plugin's sandbox takes no more than " +
                      std::to_string(input_bytes_max) + " bytes of input",
                  "put them into a file of its workspace");
    }
    *input_ += bytes;
    return {};
  }
  void end_input() {
    input_ended_ = true;
    waiters_.notify();
  }
  const std::optional<std::string>& input() const { return input_; }

 private:
  static constexpr std::uint64_t no_bytes = 0xcbf29ce484222325U;
  // One worker serves all companies, so secrets of other calls are removed.
  struct Streamed {
    std::size_t size = 0;
    std::uint64_t hash = no_bytes;
    GivenSecrets::Stream cleaner;
  };
  void append(OutputKind kind, std::string_view text) {
    if (finished_ || text.empty()) return;
    spool_.append(kind, text, clock_.now());
    ++version_;
    waiters_.notify();
  }

  std::shared_ptr<Supervisor> plugin_;
  ExecSpool spool_;
  const Clock& clock_;
  Streamed out_;
  Streamed err_;
  std::uint64_t version_ = 0;  // grows with each piece
  bool finished_ = false;
  std::optional<Error> failure_;
  std::optional<std::string> input_;  // the input so far, for a command that is fed
  bool input_ended_ = false;
  Condition waiters_;
};

std::string RemotePlace::folder_of(const PlaceRef& lease) const {
  return host_.config().folder + "/" + lease.key.str();
}

Result<std::string> RemotePlace::folder_of(const PlaceRef& lease,
                                           const std::string& exec_id) const {
  if (is_file_name(exec_id)) return folder_of(lease) + "/" + exec_id;
  return fail(Errc::bad_request, in_quotes(exec_id) + " is not a command id");
}

Result<> RemotePlace::forget(const PlaceRef& lease) {
  static_cast<SandboxFiles&>(*files_).forget(lease.key);
  const std::string folder = folder_of(lease);
  for (auto at = running_.begin(); at != running_.end();) {
    const bool its_own = at->first.starts_with(folder + "/");
    if (its_own) at->second->finish({.ended = {.outcome = Outcome::stopped}});
    at = its_own ? running_.erase(at) : std::next(at);
  }
  return remove_tree(folder);
}

Task<Workspace> RemotePlace::realize(const PlaceRef& lease,
                                     const std::optional<std::string>& wanted) {
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const bj::object metadata = provider_metadata_of(lease.metadata);
  const std::string remembered = text_in(metadata, "remoteCwd").value_or("/tmp");
  if (!place.plugin->advertises("environmentRealizeWorkspace")) {
    co_return Workspace{.cwd = wanted.value_or(remembered), .path = std::string{own_path}};
  }
  bj::object workspace{{"mode", "isolated"}, {"metadata", bj::object{}}};
  if (wanted) workspace["remotePath"] = *wanted;
  bj::object more{{"lease", place.lease}, {"workspace", std::move(workspace)}};
  BERTH_CO_TRY(const bj::value answer,
               co_await ask(place, "environmentRealizeWorkspace", std::move(more)));
  const bj::object* object = answer.if_object();
  const auto cwd = object == nullptr ? std::nullopt : text_in(*object, "cwd");
  if (!cwd || cwd->empty()) {
    co_return fail(Errc::workspace_realization_failed,
                   place.driver.plugin_key + ": the provider named no working directory");
  }
  static_cast<SandboxFiles&>(*files_).remember_folder(lease.key, *cwd);
  co_return Workspace{.cwd = wanted.value_or(*cwd), .path = std::string{own_path}};
}

Task<Started> RemotePlace::start(const PlaceRef& lease, const Command& command) {
  if (command.terminal) {
    co_return fail(Errc::execution_unsupported,
                   lease.key.name() +
                       ": a command in a plugin's sandbox has no "
                       "terminal",
                   "run it without one: berth exec -i LEASE -- COMMAND; an agent logs in with "
                   "berth exec LEASE --login claude");
  }
  BERTH_CO_TRY(const std::string folder, folder_of(lease, command.exec_id));
  if (const Result<ExecSpool> known = ExecSpool::open(folder)) {
    co_return Started{.started_at = known->started_at()};
  }
  BERTH_CO_TRY(const Site place, co_await place_of(lease));
  const std::string mark = make_uuid(host_.random(), host_.clock().now());
  BERTH_CO_TRY(bj::object more, parameters_of(command, mark));
  if (command.cwd.starts_with('/')) {
    BERTH_CO_TRY(const bool ignored, co_await ignores_cwd(place));
    if (ignored) enter_cwd(more, place.lease);
  }
  PluginCall call{
      .method = "environmentExecute", .params = place.base, .deadline = longest_command};
  std::optional<std::chrono::milliseconds> limit = milliseconds_at(place.config, "timeoutMs");
  if (command.timeout_ms) limit = std::chrono::milliseconds{*command.timeout_ms};
  if (limit) call.deadline = *limit + exec_margin;
  for (auto& entry : more) call.params.insert_or_assign(entry.key(), std::move(entry.value()));
  call.params["lease"] = place.lease;
  std::vector<Secret> given = values_of(lease.secrets);
  for (const Secret& value : command.secrets) given.push_back(value.clone());
  call.secrets = place.plugin->given().hold(given);
  const Time now = host_.clock().now();
  BERTH_CO_TRY(std::optional<ExecSpool> spool,
               ExecSpool::create(folder, now, command.output_bytes_max));
  if (!spool) co_return Started{.started_at = now};  // another call has just started it
  const auto running = std::make_shared<Running>(host_.executor(), host_.clock(), *std::move(spool),
                                                 mark, place.plugin);
  if (std::holds_alternative<StdinPipe>(command.input)) running->await_input();
  running_[folder] = running;
  call.output = running.get();
  if (limit) {
    const Limit ends{.after = *limit, .grace_ms = command.grace_ms};
    tasks_.start("plugin.exec_limit",
                 end_at_limit(*this, running, lease.clone(), command.exec_id, ends));
  }
  tasks_.start("plugin.exec", execute(running, place.plugin, std::move(call)));
  co_return Started{.started_at = now};
}

Task<> RemotePlace::execute(std::shared_ptr<Running> running, std::shared_ptr<Supervisor> plugin,
                            PluginCall call) {
  const auto end_as = [&](Outcome outcome) {
    running->finish({.ended = {.outcome = running->outcome_or(outcome)}});
  };
  const auto forget_it = [&] {
    std::erase_if(running_, [&](const auto& entry) { return entry.second == running; });
  };
  if (running->awaits_input()) {
    const auto may_begin = [&] { return !running->awaits_input() || running->finished(); };
    BERTH_CO_DO(co_await running->waiters().wait_for(
        may_begin, std::chrono::steady_clock::now() + call.deadline));
    if (running->awaits_input()) end_as(Outcome::timed_out);
  }
  if (running->input() && !running->finished()) {
    if (const Result<> given = give_input(call.params, *running->input()); !given) {
      running->finish({.failure = given.error()});
    }
  }
  if (running->finished()) {
    forget_it();
    co_return Result<>{};
  }
  const CallResult result = co_await plugin->call(std::move(call));
  forget_it();
  if (!result) {
    running->note(result.error().message);
    switch (result.error().cause) {
      case CallFailure::Cause::gone: end_as(Outcome::lost); break;
      case CallFailure::Cause::timed_out: end_as(Outcome::timed_out); break;
      default: running->finish({.failure = to_error(result.error(), "environmentExecute")}); break;
    }
    co_return Result<>{};
  }
  const bj::object* answer = result->if_object();
  if (answer == nullptr || !answer->contains("exitCode")) {
    running->finish({.failure = Error{Errc::plugin_protocol,
                                      "environmentExecute: the answer has no exitCode"}});
    co_return Result<>{};
  }
  running->take_rest(OutputKind::out, text_in(*answer, "stdout").value_or(""));
  running->take_rest(OutputKind::err, text_in(*answer, "stderr").value_or(""));
  SpoolEnd end{.ended = {.outcome = Outcome::exited, .signal = text_in(*answer, "signal")}};
  end.ended.exit_code = peek<std::int64_t>(*answer, "exitCode");
  if (end.ended.signal && !end.ended.exit_code) end.ended.outcome = Outcome::signaled;
  if (is_true_in(*answer, "timedOut")) end.ended.outcome = Outcome::timed_out;
  end.ended.outcome = running->outcome_or(end.ended.outcome);
  running->finish(std::move(end));
  co_return Result<>{};
}

Task<Ended> RemotePlace::follow(const PlaceRef& lease, const std::string& exec_id,
                                std::uint64_t offset, OutputTaker& taker) {
  BERTH_CO_TRY(const std::string folder, folder_of(lease, exec_id));
  BERTH_CO_TRY(const ExecSpool spool, ExecSpool::open(folder));
  while (true) {
    const auto found = running_.find(folder);
    const std::shared_ptr<Running> running = found == running_.end() ? nullptr : found->second;
    const std::uint64_t seen = running ? running->version() : 0;
    const bool over = !running || running->finished();
    BERTH_CO_TRY(const std::vector<ExecSpool::Piece> pieces, spool.read(offset));
    std::vector<OutputPiece> views;
    for (const ExecSpool::Piece& piece : pieces) {
      views.push_back({piece.offset, piece.next_offset, piece.kind, piece.at, piece.bytes});
    }
    if (!views.empty()) {
      offset = views.back().next_offset;
      BERTH_CO_DO(co_await taker.take(views));
      continue;
    }
    if (over) break;
    const auto news = [&] { return running->finished() || running->version() != seen; };
    BERTH_CO_DO(co_await running->waiters().wait_for(news));
  }
  BERTH_CO_TRY(const std::optional<SpoolEnd> end, spool.end());
  // It does not run, and its end was never recorded.
  if (!end) co_return Ended{.outcome = Outcome::lost, .started_at = spool.started_at()};
  if (end->failure) co_return std::unexpected(*end->failure);
  co_return end->ended;
}

Task<> RemotePlace::send(const PlaceRef& lease, const std::string& exec_id, Input input) {
  BERTH_CO_TRY(const std::string folder, folder_of(lease, exec_id));
  const auto found = running_.find(folder);
  if (found == running_.end()) {
    co_return fail(Errc::exec_not_found, "exec " + exec_id + ": does not run");
  }
  if (const auto* bytes = std::get_if<std::string>(&input)) {
    co_return found->second->take_input(*bytes);
  }
  if (std::holds_alternative<EndOfInput>(input)) {
    found->second->end_input();
    co_return Result<>{};
  }
  co_return fail(Errc::execution_unsupported,
                 "exec " + exec_id +
                     ": a command in a plugin's sandbox has no terminal and takes "
                     "no signal",
                 "cancel the run");
}

Task<> RemotePlace::renew(const PlaceRef& /*lease*/, std::int64_t /*deadline_ms*/) {
  co_return Result<>{};  // the provider's own expiry is in its config
}

Task<> RemotePlace::forget_output(const PlaceRef& /*lease*/, const std::string& /*exec_id*/) {
  co_return Result<>{};
}

Task<> RemotePlace::cancel(const PlaceRef& lease, const std::string& exec_id,
                           std::int64_t grace_ms) {
  BERTH_CO_TRY(const std::string folder, folder_of(lease, exec_id));
  const auto found = running_.find(folder);
  if (found == running_.end()) co_return Result<>{};
  const std::shared_ptr<Running> running = found->second;
  running->cancelled = true;
  if (running->awaits_input()) {  // nothing runs yet
    running->finish({.ended = {.outcome = Outcome::stopped}});
    co_return Result<>{};
  }
  const Result<Site> place = co_await place_of(lease);
  const auto over = [&] { return running->finished(); };
  const auto from_now = [](std::chrono::milliseconds time) {
    return std::chrono::steady_clock::now() + time;
  };
  Result<> reached = place ? Result<>{} : std::unexpected(place.error());
  if (reached) reached = co_await signal_marked(*place, running->mark, "TERM");
  if (reached) {
    BERTH_CO_DO(
        co_await running->waiters().wait_for(over, from_now(std::chrono::milliseconds{grace_ms})));
  }
  if (reached && !over()) {
    reached = co_await signal_marked(*place, running->mark, "KILL");
    BERTH_CO_DO(co_await running->waiters().wait_for(over, from_now(kill_wait)));
  }
  if (!over()) {
    running->note("the provider did not end the command; it ends with its sandbox");
    running->finish({.ended = {.outcome = running->outcome_or(Outcome::stopped)}});
  }
  co_return Result<>{};
}

auto RemotePlace::run_small(const Site& place, SmallCommand command) const -> Task<Output> {
  bj::array words{"-c", command.script, "berth"};
  for (const std::string& arg : command.args) words.emplace_back(arg);
  PluginCall call{
      .method = "environmentExecute", .params = place.base, .deadline = command.time + exec_margin};
  call.params["lease"] = place.lease;
  call.params["command"] = shell_of(place.lease);
  call.params["args"] = std::move(words);
  call.params["cwd"] = command.cwd;
  call.params["bypassSession"] = true;
  // Some providers run a command with this mark beside the lease's command, and not after it.
  call.params["env"] = bj::object{{"PAPERCLIP_SANDBOX_EXEC_CHANNEL", "bridge"}};
  call.params["timeoutMs"] = command.time.count();
  if (!command.input.empty()) call.params["stdin"] = std::move(command.input);
  const CallResult result = co_await place.plugin->call(std::move(call));
  if (!result) {
    co_return std::unexpected(
        to_error(result.error(), place.driver.plugin_key + ": a command in its sandbox"));
  }
  Output output;
  const bj::object* answer = result->if_object();
  if (answer == nullptr) co_return fail(Errc::plugin_protocol, "environmentExecute: no object");
  if (const auto code = peek<std::int64_t>(*answer, "exitCode")) output.exit_code = *code;
  output.out = text_in(*answer, "stdout").value_or("");
  output.err = text_in(*answer, "stderr").value_or("");
  co_return output;
}

Task<> RemotePlace::signal_marked(const Site& place, const std::string& mark,
                                  std::string_view signal) const {
  SmallCommand command{.script = std::string{signal_script},
                       .args = {std::string{mark_variable} + "=" + mark, std::string{signal}}};
  BERTH_CO_TRY(const Output output, co_await run_small(place, std::move(command)));
  if (output.exit_code == 0) co_return Result<>{};
  co_return fail(Errc::plugin_call_failed,
                 "a signal could not be sent in the sandbox: " + output.err);
}

Task<bool> RemotePlace::ignores_cwd(const Site& place) {
  const auto known = ignores_cwd_.find(place.driver.driver);
  if (known != ignores_cwd_.end()) co_return known->second;
  const Result<Output> output = co_await run_small(place, {.script = std::string{cwd_trial_script},
                                                           .args = {std::string{cwd_trial_folder}},
                                                           .time = cwd_trial_time,
                                                           .cwd = std::string{cwd_trial_folder}});
  const bool ignored = output && output->exit_code == 0 && output->out.ends_with("ignored\n");
  // A sandbox without a shell may be followed by one that has it.
  if (ignored || (output && output->out.ends_with("kept\n"))) {
    std::erase_if(ignores_cwd_, [](const auto& entry) { return entry.first.use_count() == 1; });
    ignores_cwd_[place.driver.driver] = ignored;
  }
  co_return ignored;
}

}  // namespace berth::places::remote
