#include "base/json/peek.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/follow.hpp"
#include "cli/commands/variables.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/plain_words.hpp"
#include "cli/run/page.hpp"
#include "cli/run/raw_terminal.hpp"
#include "cli/run/span.hpp"
#include "cli/run/verdict.hpp"
#include "core/enums.hpp"
#include "core/lifecycle.hpp"

#include <ostream>

namespace berth::cli {
namespace {

constexpr auto run_example = R"(berth run -e build-host make test
berth run -e Sandbox --var TOKEN=secret:deploy-key -w /workspace -- sh -c 'echo "$TOKEN"'
berth run -it -e Sandbox
berth run -d -e Sandbox sleep 600; berth exec last ps ax; berth run cancel last

The first word that is not a flag begins the command; '--' before it is needed only where the
command is called like a command of 'berth run'. Its output comes here as it is made. Its standard
input is yours unless that is a terminal, which -i passes too. Ctrl-C cancels it. With -o json both
streams go to standard error, and the run as it ended to standard output.

Exit codes: those of the command, and
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  126, 127 the command cannot be executed, or was not found
  128 + n  signal n ended it
  130      it was cancelled)";

struct RunOptions {
  std::string named;
  std::string name;
  std::string environment;
  std::string agent;
  std::string cwd;
  VariableFlags variables;
  std::string timeout;
  std::string status;
  std::string stream;
  bool interactive = false;
  bool terminal = false;
  bool removes = false;  // what every run does
  bool detach = false;
  bool follow = false;
  bool raw = false;
};

PageLook page_look(Context& context) {
  return {.columns = static_cast<std::size_t>(context.console().columns),
          .colour = context.printer().colour(),
          .now = context.printer().now()};
}

// The best available shell. Not `-l`, because the command does not need the login files.
const std::vector<std::string>& shell() {
  static const std::vector<std::string> argv{"sh", "-c",
                                             "exec \"$(command -v bash || command -v sh)\""};
  return argv;
}

// Errors that can be found without a server.
Result<bj::object> local_fields(Context& context, const RunOptions& options) {
  std::vector<std::string> command = context.flags().command.value_or(std::vector<std::string>{});
  const bool wants_shell = options.terminal && options.interactive && !options.detach;
  if (command.empty() && wants_shell) command = shell();
  if (command.empty()) {
    return fail(Errc::bad_request, "no command was given",
                "write it behind the flags: berth run -e ENVIRONMENT COMMAND ARGS; -it is a shell");
  }
  const Console& console = context.console();
  if (options.terminal && options.interactive && !console.in_is_terminal) {
    return fail(Errc::bad_request, "-t: standard input is not a terminal",
                "leave out -t, or run it from a terminal");
  }
  bj::object body{{"command", command.front()}};
  body["args"] = encode(std::vector<std::string>{command.begin() + 1, command.end()});
  set_text(body, "cwd", options.cwd);
  set_text(body, "name", options.name);
  if (!options.timeout.empty()) {
    BERTH_TRY(body["timeoutMs"], parse_span_ms(options.timeout, "--timeout"));
  }
  if (options.terminal) body["terminal"] = encode(terminal_size(console.out_fd));
  return body;
}

bool passes_stdin(Context& context, const RunOptions& options) {
  return !options.detach && (options.interactive || !context.console().in_is_terminal);
}

Result<bj::object> run_body(Context& context, const RunOptions& options) {
  BERTH_TRY(bj::object body, local_fields(context, options));
  BERTH_TRY(const std::vector<Variable> given,
            read_variables(options.variables, context.console().variables));
  context.end_with(exit_not_run);  // from here on a failure is the run's failure
  BERTH_TRY(bj::object variables, variables_in_json(context, given));
  if (!variables.empty()) body["env"] = std::move(variables);
  if (!options.environment.empty()) {
    Result<std::string> id = context.find_id(environment_kind(), options.environment);
    if (!id && options.environment.contains('=')) {
      context.end_with(static_cast<int>(ExitCode::usage));
      return fail(Errc::bad_request,
                  "-e '" + options.environment + "': -e names the environment to run in",
                  "give a variable with --var " + options.environment);
    }
    if (!id) return std::unexpected(std::move(id).error());
    body["environmentId"] = *id;
  }
  if (!options.agent.empty()) {
    BERTH_TRY(body["agentId"], context.find_id(agent_kind(), options.agent));
  }
  if (passes_stdin(context, options)) body["stdinOpen"] = true;
  return body;
}

Result<> start_run(Context& context, const RunOptions& options) {
  BERTH_TRY(const bj::object body, run_body(context, options));
  BERTH_TRY(const std::string path, context.company_path("runs"));
  BERTH_TRY(const Client* server, context.client());
  if (options.detach) {
    BERTH_TRY(const bj::value run, context.send({.method = "POST", .path = path, .body = body}));
    context.end_with(0);
    // Only the id, for `RUN=$(berth run -d ...)`.
    if (context.printer().is_json()) {
      context.printer().object(run);
    } else {
      context.printer().text(text_of(run, "id") + "\n");
    }
    return {};
  }
  Attachment attachment{*server, context.console()};
  BERTH_TRY(const bj::value run, context.send({.method = "POST", .path = path, .body = body}));
  Console& console = context.console();
  AttachOptions request{.run_id = text_of(run, "id"), .on_interrupt = OnInterrupt::cancel_run};
  if (passes_stdin(context, options)) request.stdin_fd = console.in;
  if (context.flags().json) request.output_to = OutputTo::all_to_err;
  std::optional<RawTerminal> raw;
  if (options.terminal && options.interactive) {
    BERTH_TRY(RawTerminal entered, RawTerminal::enter(console.in));
    raw.emplace(std::move(entered));
    request.terminal_fd = console.in;
  }
  return follow_run(context, attachment, std::move(request));
}

Result<> list_runs(Context& context, const RunOptions& options) {
  BERTH_TRY(std::string path, context.company_path("heartbeat-runs"));
  const char* joint = "?";
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    path += std::exchange(joint, "&") + std::string{key} + "=" + url_encoded(value);
  };
  add("status", options.status);
  if (!options.environment.empty()) {
    BERTH_TRY(const std::string id, context.find_id(environment_kind(), options.environment));
    add("environmentId", id);
  }
  if (!options.agent.empty()) {
    BERTH_TRY(const std::string id, context.find_id(agent_kind(), options.agent));
    add("agentId", id);
  }
  BERTH_TRY(bj::array rows, context.list(path));
  if (!context.printer().is_json()) context.add_names(rows);
  context.printer().list(rows, run_kind().columns);
  return {};
}

Result<> show(Context& context, const RunOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  BERTH_TRY(const bj::value run, context.get("/api/heartbeat-runs/" + id));
  if (context.printer().look() == Look::json) {
    context.printer().object(run);
  } else {
    context.printer().text(run_page(run, page_look(context)));
  }
  return {};
}

// The output up to now, or until the run is over.
Result<> run_logs(Context& context, const RunOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  AttachOptions request{.run_id = id};
  if (options.raw) request.output_to = OutputTo::all_to_out;
  if (!options.stream.empty()) {
    request.only = parse_name<core::OutputStream>(options.stream);
    request.output_to = OutputTo::all_to_out;
  }
  if (context.flags().quiet) request.remarks = Remarks::silent;
  TranscriptView view;
  if (!options.raw && options.stream.empty() && !context.flags().json) {
    BERTH_TRY(const bj::value run, context.get("/api/heartbeat-runs/" + id));
    BERTH_TRY(view, TranscriptView::of_run(context, run));
    BERTH_DO(view.show_prompt(context, id));
  }
  return options.follow ? look_on(context, std::move(request), view)
                        : show_log_so_far(context, std::move(request), view);
}

Result<> post_to_run(Context& context, const RunOptions& options, const std::string& verb,
                     const std::string& note) {
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  BERTH_TRY(const bj::value run,
            context.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/" + verb}));
  if (context.printer().look() == Look::json) context.printer().object(run);
  context.printer().note(note + " " + text_of(run, "id"));
  return {};
}

Result<> remove_run(Context& context, const RunOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  BERTH_DO(
      confirm(context.console(), "Delete the run " + id + " with its log?", context.flags().yes));
  BERTH_TRY(const bj::value gone,
            context.send({.method = "DELETE", .path = "/api/heartbeat-runs/" + id}));
  if (context.printer().look() == Look::json) context.printer().object(gone);
  context.printer().note("deleted run " + id);
  return {};
}

Result<> retry(Context& context, const RunOptions& options) {
  if (!options.follow) return post_to_run(context, options, "retry", "started again as run");
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  BERTH_TRY(const Client* server, context.client());
  Attachment attachment{*server, context.console()};
  BERTH_TRY(const bj::value run,
            context.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/retry"}));
  AttachOptions request{.run_id = text_of(run, "id"), .on_interrupt = OnInterrupt::cancel_run};
  if (context.flags().json) request.output_to = OutputTo::all_to_err;
  return follow_run(context, attachment, std::move(request));
}

// One line an event: programs get JSON lines, people the moment and the sentence.
void print_run_event(Context& context, const bj::value& event) {
  std::ostream& out = context.console().out;
  if (context.printer().look() == Look::json) {
    out << encode_text(event) << "\n" << std::flush;
    return;
  }
  out << printable(text_of(event, "createdAt")) << "  "
      << printable(plain_action(text_of(event, "eventType"))) << "  "
      << printable(text_of(event, "message")) << "\n"
      << std::flush;
}

Result<> events(Context& context, const RunOptions& options) {
  BERTH_TRY(const std::string id, context.find_id(run_kind(), options.named));
  const std::string path = "/api/heartbeat-runs/" + id + "/events";
  BERTH_TRY(const Client* server, context.client());
  if (options.follow) {
    return server->follow(path + "/stream", [&context](const Event& event) {
      if (const Result<bj::value> row = parse_json(event.data)) print_run_event(context, *row);
      return context.console().out.good();
    });
  }
  constexpr std::size_t page = 1000;
  std::int64_t after = 0;
  for (std::size_t got = page; got == page;) {
    BERTH_TRY(const bj::value rows, context.get(path + "?limit=" + std::to_string(page) +
                                                "&afterSeq=" + std::to_string(after)));
    if (!rows.is_array()) break;
    got = rows.get_array().size();
    for (const bj::value& row : rows.get_array()) {
      print_run_event(context, row);
      after = peek<std::int64_t>(row, "seq").value_or(after);
    }
  }
  return {};
}

using RunAction = Result<> (*)(Context&, const RunOptions&);

// A command about one run; it ignores words after `--`.
CLI::App& add_about_run(CommandTree& tree, CLI::App& group, const char* name, const char* says,
                        const char* example, const std::shared_ptr<RunOptions>& options,
                        RunAction action) {
  CLI::App& app = tree.leaf(group, name, says, example, [options, action](Context& context) {
    return action(context, *options);
  });
  app.add_option("run", options->named, "its name, its id or an end of it; last: the newest")
      ->required();
  return app;
}

void add_start(CLI::App& app, RunOptions& options) {
  add_environment_flag(app, options.environment, "where it runs; else the server chooses");
  app.add_option("-a,--agent", options.agent, "for whom it runs")->type_name("AGENT");
  app.add_option("--name", options.name, "by which you find it again; the newest one counts");
  add_workdir_flag(app, options.cwd, "folder there in which it starts");
  add_variable_flags(app, options.variables);
  add_old_name(app, "--env", options.variables.old_given);
  add_old_name(app, "--env-secret", options.variables.secrets);
  app.add_option("--timeout", options.timeout, "most time it may take: 30s, 10m, 1h30m")
      ->type_name("SPAN");
  app.add_flag("-i,--interactive", options.interactive, "pass standard input, also a terminal");
  app.add_flag("-t,--tty", options.terminal, "give it a terminal; -it alone is a shell");
  app.add_flag("-d,--detach", options.detach, "start it, print its id and leave");
  app.add_flag("--rm", options.removes)->group("");
}

void add_list_command(CommandTree& tree, CLI::App& group) {
  const auto wanted = std::make_shared<RunOptions>();
  CLI::App& app =
      tree.leaf(group, "list", "list them, newest first", "berth run list --status failed -n 20",
                [wanted](Context& context) { return list_runs(context, *wanted); });
  add_choice<core::RunState>(app, "--status", wanted->status, "only those in this state");
  add_environment_flag(app, wanted->environment, "only those in this environment");
  add_old_name(app, "--env", wanted->environment);
  app.add_option("-a,--agent", wanted->agent, "only those of this agent")->type_name("AGENT");
}

}  // namespace

void add_run_commands(CommandTree& tree) {
  const auto started = std::make_shared<RunOptions>();
  CLI::App& group =
      tree.leaf(tree.root(), "run", "runs: execute a command, and look at runs", run_example,
                [started](Context& context) { return start_run(context, *started); });
  add_start(group, *started);
  add_list_command(tree, group);
  add_about_run(tree, group, "get", "show one, with its phases", "berth run get 44f87a21",
                std::make_shared<RunOptions>(), show);
  const auto read = std::make_shared<RunOptions>();
  CLI::App& reads = add_about_run(tree, group, "logs", "print its output",
                                  "berth run logs -f 44f87a21", read, run_logs);
  reads.add_flag("-f,--follow", read->follow, "go on until it is over");
  add_choice<core::OutputStream>(reads, "--stream", read->stream, "only this stream, on stdout");
  reads.add_flag("--raw", read->raw,
                 "both streams on stdout, in order of arrival, and of an agent what its program "
                 "printed");
  add_about_run(tree, group, "cancel", "end it and everything it started",
                "berth run cancel 44f87a21", std::make_shared<RunOptions>(),
                [](Context& context, const RunOptions& options) {
                  return post_to_run(context, options, "cancel", "cancelling run");
                });
  add_about_run(tree, group, "delete", "delete one that is over, with its log",
                "berth run delete 44f87a21 --yes", std::make_shared<RunOptions>(), remove_run);
  const auto again = std::make_shared<RunOptions>();
  CLI::App& retries = add_about_run(tree, group, "retry", "start it once more, as it was asked for",
                                    "berth run retry 44f87a21 -f", again, retry);
  retries.add_flag("-f,--follow", again->follow, "stay at it, as 'berth run' does");
  const auto told = std::make_shared<RunOptions>();
  CLI::App& tells = add_about_run(tree, group, "events", "what happened to it, in order",
                                  "berth run events 44f87a21", told, events);
  tells.add_flag("-f,--follow", told->follow, "go on as it happens");
}

}  // namespace berth::cli
