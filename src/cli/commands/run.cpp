#include "cli/commands/common.hpp"
#include "cli/commands/follow.hpp"
#include "cli/run/page.hpp"
#include "cli/run/raw_terminal.hpp"
#include "cli/run/span.hpp"
#include "cli/run/verdict.hpp"
#include "core/enums.hpp"
#include "core/lifecycle.hpp"

#include <ostream>

namespace berth::cli {
namespace {

constexpr auto run_example = R"(berth run -e build-host -- make test

What stands behind -- is the command. Its output comes here as it is made, its standard input is
ours unless that is a terminal (-i passes a terminal too), and Ctrl-C cancels it. With --json both
streams go to standard error, and the run as it ended to standard output.

Exit codes: those of the command, and
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  128 + n  signal n ended it
  130      it was cancelled)";

struct RunOptions {
  std::string named;
  std::string environment;
  std::string agent;
  std::string cwd;
  std::vector<std::string> variables;
  std::vector<std::string> secrets;
  std::string timeout;
  std::string status;
  std::string stream;
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool follow = false;
  bool raw = false;
};

PageLook look_of(Session& session) {
  return {.columns = static_cast<std::size_t>(session.console().columns),
          .colour = session.printer().colour(),
          .now = session.printer().now()};
}

Result<std::pair<std::string, std::string>> split_pair(const std::string& pair, const char* flag) {
  const std::size_t equals = pair.find('=');
  if (equals == 0 || equals == std::string::npos) {
    return fail(Errc::bad_request, std::string{flag} + " '" + pair + "': has no '='",
                std::string{"write it as "} + flag + " NAME=value");
  }
  return std::pair{pair.substr(0, equals), pair.substr(equals + 1)};
}

// What can be wrong without a server.
Result<bj::object> local_fields(Session& session, const RunOptions& options) {
  const auto& command = session.flags().command;
  if (!command || command->empty()) {
    return fail(Errc::bad_request, "no command was given",
                "write it behind two dashes: berth run -e ENV -- COMMAND ARGS");
  }
  const Console& console = session.console();
  if (options.terminal && options.interactive && !console.in_is_terminal) {
    return fail(Errc::bad_request, "-t: standard input is no terminal",
                "leave out -t, or run it from a terminal");
  }
  bj::object body{{"command", command->front()}};
  body["args"] = encode(std::vector<std::string>{command->begin() + 1, command->end()});
  set_text(body, "cwd", options.cwd);
  if (!options.timeout.empty()) {
    BERTH_TRY(body["timeoutMs"], parse_span_ms(options.timeout, "--timeout"));
  }
  if (options.terminal) body["terminal"] = encode(terminal_size(console.out_fd));
  return body;
}

bool passes_stdin(Session& session, const RunOptions& options) {
  return !options.detach && (options.interactive || !session.console().in_is_terminal);
}

Result<bj::object> body_of(Session& session, const RunOptions& options) {
  BERTH_TRY(bj::object body, local_fields(session, options));
  bj::object variables;
  for (const std::string& pair : options.variables) {
    BERTH_TRY(const auto both, split_pair(pair, "--env"));
    variables[both.first] = both.second;
  }
  std::vector<std::pair<std::string, std::string>> secrets;
  for (const std::string& pair : options.secrets) {
    BERTH_TRY(const auto both, split_pair(pair, "--env-secret"));
    secrets.push_back(both);
  }
  session.end_with(exit_not_run);  // from here on it is the run that fails
  for (const auto& [name, secret] : secrets) {
    BERTH_TRY(const std::string id, session.find_id(secret_kind(), secret));
    variables[name] = bj::object{{"type", "secret_ref"}, {"secretId", id}};
  }
  if (!variables.empty()) body["env"] = std::move(variables);
  if (!options.environment.empty()) {
    BERTH_TRY(body["environmentId"], session.find_id(environment_kind(), options.environment));
  }
  if (!options.agent.empty()) {
    BERTH_TRY(body["agentId"], session.find_id(agent_kind(), options.agent));
  }
  if (passes_stdin(session, options)) body["stdinOpen"] = true;
  return body;
}

Result<> start(Session& session, const RunOptions& options) {
  BERTH_TRY(const bj::object body, body_of(session, options));
  BERTH_TRY(const std::string path, session.company_path("runs"));
  BERTH_TRY(const Client* server, session.client());
  if (options.detach) {
    BERTH_TRY(const bj::value run, session.send({.method = "POST", .path = path, .body = body}));
    session.end_with(0);
    session.printer().object(run);
    return {};
  }
  Attachment attachment{*server, session.console()};
  BERTH_TRY(const bj::value run, session.send({.method = "POST", .path = path, .body = body}));
  Console& console = session.console();
  AttachWish wish{.run_id = text_of(run, "id"), .on_interrupt = OnInterrupt::cancel_run};
  if (passes_stdin(session, options)) wish.stdin_fd = console.in;
  if (session.flags().json) wish.output_to = OutputTo::all_to_err;
  std::optional<RawTerminal> raw;
  if (options.terminal && options.interactive) {
    BERTH_TRY(RawTerminal entered, RawTerminal::enter(console.in));
    raw.emplace(std::move(entered));
    wish.terminal_fd = console.in;
  }
  return follow_run(session, attachment, std::move(wish));
}

Result<> list(Session& session, const RunOptions& options) {
  BERTH_TRY(std::string path, session.company_path("heartbeat-runs"));
  const char* joint = "?";
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    path += std::exchange(joint, "&") + std::string{key} + "=" + url_encoded(value);
  };
  add("status", options.status);
  if (!options.environment.empty()) {
    BERTH_TRY(const std::string id, session.find_id(environment_kind(), options.environment));
    add("environmentId", id);
  }
  if (!options.agent.empty()) {
    BERTH_TRY(const std::string id, session.find_id(agent_kind(), options.agent));
    add("agentId", id);
  }
  BERTH_TRY(const bj::array rows, session.list(path));
  session.printer().list(rows, run_kind().columns);
  return {};
}

Result<> show(Session& session, const RunOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  BERTH_TRY(const bj::value run, session.get("/api/heartbeat-runs/" + id));
  if (session.printer().look() == Look::json) {
    session.printer().object(run);
  } else {
    session.printer().text(run_page(run, look_of(session)));
  }
  return {};
}

// The output up to now, or until the run is over.
Result<> logs(Session& session, const RunOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  AttachWish wish{.run_id = id};
  if (options.raw) wish.output_to = OutputTo::all_to_out;
  if (!options.stream.empty()) {
    wish.only = parse_name<core::OutputStream>(options.stream);
    wish.output_to = OutputTo::all_to_out;
  }
  if (session.flags().quiet) wish.remarks = Remarks::silent;
  TranscriptView view;
  if (!options.raw && options.stream.empty() && !session.flags().json) {
    BERTH_TRY(const bj::value run, session.get("/api/heartbeat-runs/" + id));
    BERTH_TRY(view, TranscriptView::of_run(session, run));
    BERTH_DO(view.show_prompt(session, id));
  }
  return options.follow ? look_on(session, std::move(wish), view)
                        : show_log_so_far(session, std::move(wish), view);
}

Result<> post(Session& session, const RunOptions& options, const std::string& verb,
              const std::string& note) {
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  BERTH_TRY(const bj::value run,
            session.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/" + verb}));
  if (session.printer().look() == Look::json) session.printer().object(run);
  session.printer().note(note + " " + text_of(run, "id"));
  return {};
}

Result<> remove(Session& session, const RunOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  BERTH_DO(
      confirm(session.console(), "Delete the run " + id + " with its log?", session.flags().yes));
  BERTH_TRY(const bj::value gone,
            session.send({.method = "DELETE", .path = "/api/heartbeat-runs/" + id}));
  if (session.printer().look() == Look::json) session.printer().object(gone);
  session.printer().note("deleted run " + id);
  return {};
}

Result<> retry(Session& session, const RunOptions& options) {
  if (!options.follow) return post(session, options, "retry", "started again as run");
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  BERTH_TRY(const Client* server, session.client());
  Attachment attachment{*server, session.console()};
  BERTH_TRY(const bj::value run,
            session.send({.method = "POST", .path = "/api/heartbeat-runs/" + id + "/retry"}));
  AttachWish wish{.run_id = text_of(run, "id"), .on_interrupt = OnInterrupt::cancel_run};
  if (session.flags().json) wish.output_to = OutputTo::all_to_err;
  return follow_run(session, attachment, std::move(wish));
}

// One line an event: programs get JSON lines, people the moment and the sentence.
void print_event(Session& session, const bj::value& event) {
  std::ostream& out = session.console().out;
  if (session.printer().look() == Look::json) {
    out << encode_text(event) << "\n" << std::flush;
    return;
  }
  out << printable(text_of(event, "createdAt")) << "  " << printable(text_of(event, "eventType"))
      << "  " << printable(text_of(event, "message")) << "\n"
      << std::flush;
}

Result<> events(Session& session, const RunOptions& options) {
  BERTH_TRY(const std::string id, session.find_id(run_kind(), options.named));
  const std::string path = "/api/heartbeat-runs/" + id + "/events";
  BERTH_TRY(const Client* server, session.client());
  if (options.follow) {
    return server->follow(path + "/stream", [&session](const Event& event) {
      if (const Result<bj::value> row = parse_json(event.data)) print_event(session, *row);
      return session.console().out.good();
    });
  }
  constexpr std::size_t page = 1000;
  std::int64_t after = 0;
  for (std::size_t got = page; got == page;) {
    BERTH_TRY(const bj::value rows, session.get(path + "?limit=" + std::to_string(page) +
                                                "&afterSeq=" + std::to_string(after)));
    if (!rows.is_array()) break;
    got = rows.get_array().size();
    for (const bj::value& row : rows.get_array()) {
      print_event(session, row);
      const bj::value* seq = row.is_object() ? row.get_object().if_contains("seq") : nullptr;
      if (seq != nullptr && seq->is_int64()) after = seq->get_int64();
    }
  }
  return {};
}

using RunAction = Result<> (*)(Session&, const RunOptions&);

// A command about one run; it does not look at words behind `--`.
CLI::App& add_about_run(CommandTree& tree, CLI::App& group, const char* name, const char* says,
                        const char* example, const std::shared_ptr<RunOptions>& options,
                        RunAction action) {
  CLI::App& app = tree.leaf(group, name, says, example, [options, action](Session& session) {
    return action(session, *options);
  });
  app.add_option("run", options->named, "its id or the start of its id")->required();
  return app;
}

void add_start(CLI::App& app, RunOptions& options) {
  app.add_option("-e,--environment", options.environment,
                 "where it runs; without it the server "
                 "chooses")
      ->type_name("ENVIRONMENT");
  app.add_option("-a,--agent", options.agent, "for whom it runs")->type_name("AGENT");
  app.add_option("-C,--cwd", options.cwd, "folder there in which it starts")->type_name("DIR");
  app.add_option("--env", options.variables, "an environment variable of the command")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--env-secret", options.secrets, "a variable whose value is a secret")
      ->type_name("NAME=SECRET")
      ->allow_extra_args(false);
  app.add_option("--timeout", options.timeout, "most time it may take: 30s, 10m, 1h30m")
      ->type_name("SPAN");
  app.add_flag("-i,--interactive", options.interactive, "pass standard input, also a terminal");
  app.add_flag("-t,--tty", options.terminal, "give it a terminal; -it is a session in it");
  app.add_flag("-d,--detach", options.detach, "start it and leave; prints the run");
}

void add_list_command(CommandTree& tree, CLI::App& group) {
  const auto wanted = std::make_shared<RunOptions>();
  CLI::App& app =
      tree.leaf(group, "list", "list them, newest first", "berth run list --status failed -n 20",
                [wanted](Session& session) { return list(session, *wanted); });
  add_choice<core::RunState>(app, "--status", wanted->status, "only those in this state");
  app.add_option("-e,--env", wanted->environment, "only those in this environment")
      ->type_name("ENVIRONMENT");
  app.add_option("-a,--agent", wanted->agent, "only those of this agent")->type_name("AGENT");
}

}  // namespace

void add_run_commands(CommandTree& tree) {
  const auto started = std::make_shared<RunOptions>();
  CLI::App& group =
      tree.leaf(tree.root(), "run", "runs: execute a command, and look at runs", run_example,
                [started](Session& session) { return start(session, *started); });
  add_start(group, *started);
  add_list_command(tree, group);
  add_about_run(tree, group, "get", "show one, with its phases", "berth run get 0190b5d2",
                std::make_shared<RunOptions>(), show);
  const auto read = std::make_shared<RunOptions>();
  CLI::App& reads = add_about_run(tree, group, "logs", "print its output",
                                  "berth run logs -f 0190b5d2", read, logs);
  reads.add_flag("-f,--follow", read->follow, "go on until it is over");
  add_choice<core::OutputStream>(reads, "--stream", read->stream, "only this stream, on stdout");
  reads.add_flag("--raw", read->raw,
                 "both streams on stdout, in order of arrival, and of an agent what its program "
                 "printed");
  add_about_run(tree, group, "cancel", "end it and everything it started",
                "berth run cancel 0190b5d2", std::make_shared<RunOptions>(),
                [](Session& session, const RunOptions& options) {
                  return post(session, options, "cancel", "cancelling run");
                });
  add_about_run(tree, group, "delete", "delete one that is over, with its log",
                "berth run delete 0190b5d2 --yes", std::make_shared<RunOptions>(), remove);
  const auto again = std::make_shared<RunOptions>();
  CLI::App& retries = add_about_run(tree, group, "retry", "start it once more, as it was asked for",
                                    "berth run retry 0190b5d2 -f", again, retry);
  retries.add_flag("-f,--follow", again->follow, "stay at it, as 'berth run' does");
  const auto told = std::make_shared<RunOptions>();
  CLI::App& tells = add_about_run(tree, group, "events", "what happened to it, in order",
                                  "berth run events 0190b5d2", told, events);
  tells.add_flag("-f,--follow", told->follow, "go on as it happens");
}

}  // namespace berth::cli
