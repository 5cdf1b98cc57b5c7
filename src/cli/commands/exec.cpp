#include "cli/commands/common.hpp"
#include "cli/commands/place.hpp"
#include "cli/commands/terminal.hpp"
#include "cli/run/span.hpp"
#include "cli/run/verdict.hpp"
#include "core/rows/login.hpp"

namespace berth::cli {
namespace {

constexpr auto exec_example = R"(berth exec last ps ax
berth exec -it 44f87a21
berth exec -i 44f87a21 sh -c 'cat >notes' <notes
berth exec 44f87a21 --login claude

The command ends with this one, unless it has a terminal of its own. Without -i its standard input
is empty. --json shows its end and the first MiB of its output as text; it then has 30 seconds, or
up to a minute with --timeout.

A sandbox of a plugin is given the input as a whole, before the command runs, unless its provider
and the setting enableSandboxDuplexBridge allow more. A login says its token here and nowhere else.

Exit codes: those of the command, and
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  126, 127 the command cannot be executed, or was not found
  128 + n  signal n ended it)";

struct ExecOptions {
  std::string named;
  bool interactive = false;
  bool terminal = false;
  std::string cwd;
  std::string timeout;
  std::string login;
};

Result<> expect_sense(const ExecOptions& options,
                      const std::optional<std::vector<std::string>>& command) {
  const bool has_command = command && !command->empty();
  if (!options.login.empty()) {
    if (has_command || options.terminal || options.interactive || !options.cwd.empty()) {
      return fail(Errc::bad_request, "--login cannot be combined with a command, -i, -t or --cwd",
                  "write it as berth exec LEASE --login " + options.login);
    }
    return {};
  }
  if (!has_command && !options.terminal) {
    return fail(Errc::bad_request, "no command was given",
                "write it behind the place: berth exec last ps ax; -t alone is a shell");
  }
  if (!options.timeout.empty() && (options.interactive || options.terminal)) {
    return fail(Errc::bad_request, "--timeout: is for commands without -i and -t",
                "leave it out: the command ends with this one");
  }
  return {};
}

// The whole result as the server reports it: output as text, cut if it is long.
Result<> exec_as_json(Context& context, const StreamedCommand& wanted) {
  bj::object body{{"argv", encode(wanted.argv)}};
  set_text(body, "cwd", wanted.cwd);
  if (wanted.timeout_ms) body["timeoutMs"] = *wanted.timeout_ms;
  BERTH_TRY(const bj::value ended,
            context.send({.method = "POST",
                          .path = "/api/environment-leases/" + wanted.lease_id + "/exec",
                          .body = std::move(body)}));
  context.printer().object(ended);
  context.end_with(tell_end_of_exec(context, ended));
  return {};
}

// One command in a leased place, with its output and exit code as if it ran here.
Result<> exec(Context& context, const ExecOptions& options) {
  const auto& command = context.flags().command;
  BERTH_DO(expect_sense(options, command));
  std::optional<std::int64_t> timeout_ms;
  if (!options.timeout.empty()) {
    BERTH_TRY(timeout_ms, parse_span_ms(options.timeout, "--timeout"));
  }
  // A little longer than the command, so that its end is seen.
  constexpr std::chrono::seconds longest_command = std::chrono::hours{8};
  constexpr std::chrono::seconds slack{60};
  const auto longest = timeout_ms ? std::chrono::seconds{*timeout_ms / 1000} : longest_command;
  BERTH_TRY(const std::string id,
            enter_place(context, options.named, std::min(longest, longest_command) + slack));
  context.end_with(exit_not_run);
  StreamedCommand wanted{.lease_id = id,
                         .argv = command.value_or(std::vector<std::string>{}),
                         .cwd = options.cwd,
                         .timeout_ms = timeout_ms};
  const bool is_plain = !options.terminal && !options.interactive && options.login.empty();
  if (is_plain && context.flags().json) return exec_as_json(context, wanted);
  if (options.interactive) wanted.input = StreamedCommand::Input::standard;
  const Result<int> code = !options.login.empty() ? log_in(context, id, options.login)
                           : options.terminal
                               ? sit_in_terminal(context, id, wanted.argv, options.cwd)
                               : stream_command(context, wanted);
  context.end_with(code ? *code : exit_code_of_cause(code.error().code));
  if (!code) return std::unexpected(code.error());
  return {};
}

}  // namespace

void add_exec_command(CommandTree& tree) {
  const auto options = std::make_shared<ExecOptions>();
  CLI::App& app =
      tree.leaf(tree.root(), "exec", "run one more command in the place of a run", exec_example,
                [options](Context& context) { return exec(context, *options); });
  app.add_option("place", options->named, place_words)->required();
  app.add_flag("-i,--interactive", options->interactive, "pass standard input; -t does so too");
  add_choice<core::LoginCommand>(app, "--login", options->login,
                                 "log in an agent's own program, in the sandbox of a plugin");
  app.add_flag("-t,--tty", options->terminal, "give it a terminal; a shell unless said");
  app.add_flag("--terminal", options->terminal)->group("");
  add_workdir_flag(app, options->cwd, "where it works");
  app.add_option("--timeout", options->timeout, "longest time: 8h unless said")->type_name("TIME");
}

}  // namespace berth::cli
