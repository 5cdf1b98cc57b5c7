#include "base/text.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/terminal.hpp"
#include "cli/failure.hpp"
#include "cli/run/span.hpp"
#include "cli/run/verdict.hpp"
#include "cli/sandbox_shortfall.hpp"
#include "cli/sandbox_wish.hpp"
#include "core/bindings.hpp"
#include "core/lifecycle.hpp"
#include "core/linux_config.hpp"
#include "core/login.hpp"
#include "images/image_store.hpp"

#include <algorithm>
#include <ostream>

namespace berth::cli {
namespace {

constexpr auto run_example = R"(berth sandbox run -- sh -c 'id; ls /'
berth sandbox run --allow pypi.org --bind /srv/data:/data:ro --memory 512 -- make test

Needs no server: the sandbox is made for this command and goes with it. Standard input is passed
unless it is a terminal (-i passes that too), and Ctrl-C ends the command. Without a command the
entry point and command of the image are run.

What of the isolation this machine cannot give is told on standard error, unless -q says not to. A
limit of --memory, --pids or --cpus that is not in force is refused, unless --min-isolation says
how little will do.

Exit codes: those of the command, and
  2        the command line is wrong
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  128 + n  signal n ended it, or came here and ended it: 130 for Ctrl-C, 143 for SIGTERM)";

constexpr auto exec_example = R"(berth exec 0190b5d2 -- ps ax
berth exec -it 0190b5d2
berth exec -i 0190b5d2 -- sh -c 'cat >notes' <notes
berth exec 0190b5d2 --login claude

The command ends with this one, unless it has a terminal of its own. Without -i its standard input
is empty. --json shows its end and the first MiB of its output as text; it then has 30 seconds, or
up to a minute with --timeout.

A sandbox of a plugin is given the input as a whole, before the command runs, unless its provider
and the setting enableSandboxDuplexBridge allow more. A login says its token here and nowhere else.

Exit codes: those of the command, and
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  128 + n  signal n ended it)";

struct SandboxOptions {
  std::string image;
  std::optional<std::int64_t> memory_mb;
  std::optional<std::int64_t> pids;
  std::optional<std::int64_t> disk_mb;
  std::optional<std::int64_t> inodes;
  std::optional<double> cpus;
  std::string network;
  std::string user;
  std::string min_isolation;
  std::string timeout;
  std::string cwd;
  std::vector<std::string> allow;
  std::vector<std::string> deny;
  std::vector<std::string> weaken;
  std::vector<std::string> binds;
  std::vector<std::string> variables;
  bool interactive = false;
  bool terminal = false;
};

template <class T>
void set(bj::object& config, const char* key, const std::optional<T>& value) {
  if (value) config[key] = *value;
}

// The flag that a field of the config comes from, and the unit of its numbers.
struct FlagOf {
  std::string_view field;
  std::string_view flag;
  std::string_view unit = "";
};
constexpr FlagOf flags_of_fields[] = {
    {"/config/image", "--image"},
    {"/config/memoryMb", "--memory", " MiB"},
    {"/config/diskMb", "--disk", " MiB"},
    {"/config/inodes", "--inodes"},
    {"/config/pids", "--pids"},
    {"/config/cpus", "--cpus"},
    {"/config/timeoutMs", "--timeout", " ms"},
    {"/config/network", "--net"},
    {"/config/user", "--user"},
    {"/config/minIsolation", "--min-isolation"},
    {"/config/allow", "--weaken"},
    {"/config/egress/deny", "--deny"},
    {"/config/egress", "--allow"},
};

// What is wrong in the config, as something that is wrong in the command line.
Error by_flags(const Error& error, const SandboxOptions& options) {
  std::string message;
  for (const Issue& issue : error.issues) {
    const auto is_it = [&](const FlagOf& one) { return issue.path.starts_with(one.field); };
    const auto* const found = std::ranges::find_if(flags_of_fields, is_it);
    const bool known = found != std::end(flags_of_fields);
    std::string flag{known ? found->flag : std::string_view{issue.path}};
    if (flag == "--allow" && options.allow.empty()) flag = "--deny";
    message += (message.empty() ? "" : "; ") + flag + ": " + issue.message +
               std::string{known ? found->unit : ""};
  }
  return {.code = Errc::bad_request,
          .message = message.empty() ? error.message : std::move(message),
          .remedy = "see 'berth sandbox run --help'"};
}

Result<bj::object> config_of(const SandboxOptions& options) {
  bj::object config{{"provider", core::linux_provider}};
  set_text(config, "image", options.image);
  set_text(config, "network", options.network);
  set_text(config, "user", options.user);
  set_text(config, "minIsolation", options.min_isolation);
  set(config, "memoryMb", options.memory_mb);
  set(config, "pids", options.pids);
  set(config, "diskMb", options.disk_mb);
  set(config, "inodes", options.inodes);
  set(config, "cpus", options.cpus);
  if (!options.weaken.empty()) config["allow"] = encode(options.weaken);
  if (!options.allow.empty() || !options.deny.empty()) {
    bj::object egress;
    if (!options.allow.empty()) egress["allow"] = encode(options.allow);
    if (!options.deny.empty()) egress["deny"] = encode(options.deny);
    config["egress"] = std::move(egress);
  }
  if (!options.timeout.empty()) {
    BERTH_TRY(config["timeoutMs"], parse_span_ms(options.timeout, "--timeout"));
  }
  const auto parsed = core::parse_linux_config(config);
  if (!parsed) return std::unexpected(by_flags(parsed.error(), options));
  return config;
}

// SRC[:DST[:ro|:rw]]: where it is here, where it is inside, and whether it may be changed there.
Result<keeper::sandbox::Bind> bind_of(const std::string& text) {
  const std::size_t first = text.find(':');
  std::string source = text.substr(0, first);
  std::string rest = first == std::string::npos ? source : text.substr(first + 1);
  keeper::sandbox::Bind bind{.access = keeper::sandbox::Access::writable};
  for (const std::string mode : {"ro", "rw"}) {
    if (rest != mode && !rest.ends_with(":" + mode)) continue;
    if (mode == "ro") bind.access = keeper::sandbox::Access::read_only;
    rest = rest == mode ? source : rest.substr(0, rest.size() - mode.size() - 1);
    break;
  }
  if (!source.starts_with('/') || !rest.starts_with('/') || rest.contains(':')) {
    return fail(Errc::bad_request, "--bind '" + text + "': is no pair of absolute paths",
                "write it as --bind /folder/here:/folder/inside or, to keep it as it is, "
                "--bind /folder/here:/folder/inside:ro; \"$PWD\" is the folder that you are in");
  }
  bind.source = std::move(source);
  bind.target = std::move(rest);
  return bind;
}

// What can be seen from here: two at one place, where only the last would be there.
Result<std::vector<keeper::sandbox::Bind>> binds_of(const std::vector<std::string>& texts) {
  std::vector<keeper::sandbox::Bind> binds;
  for (const std::string& text : texts) {
    BERTH_TRY(keeper::sandbox::Bind bind, bind_of(text));
    const auto taken = std::ranges::find(binds, bind.target, &keeper::sandbox::Bind::target);
    if (taken != binds.end()) {
      return fail(Errc::bad_request,
                  "--bind '" + text + "': " + taken->source + " is at " + bind.target + " already",
                  "give each folder a place of its own inside");
    }
    binds.push_back(std::move(bind));
  }
  return binds;
}

// What the image itself would run: asked only when nothing else is.
Result<std::vector<std::string>> command_of_image(Session& session, const std::string& image) {
  std::vector<std::string> argv;
  if (!image.empty() && image != images::host_name) {
    BERTH_TRY(const images::ImageStore store,
              images::ImageStore::open(session.config().settings.home + "/images"));
    BERTH_TRY(const images::Image found, store.find(image));
    argv = found.config.entrypoint;
    argv.insert(argv.end(), found.config.cmd.begin(), found.config.cmd.end());
  }
  if (!argv.empty()) return argv;
  return fail(Errc::bad_request, "no command was given, and the image has none of its own",
              "write it behind two dashes: berth sandbox run -- COMMAND ARGS");
}

Result<SandboxWish> wish_of(Session& session, const SandboxOptions& options) {
  std::vector<std::string> argv = session.flags().command.value_or(std::vector<std::string>{});
  if (argv.empty()) {
    BERTH_TRY(argv, command_of_image(session, options.image));
  }
  const Console& console = session.console();
  if (options.terminal && !console.in_is_terminal) {
    return fail(Errc::bad_request, "-t: standard input is no terminal",
                "leave out -t, or run it from a terminal");
  }
  SandboxWish wish{.config = {}, .argv = std::move(argv), .cwd = options.cwd};
  BERTH_TRY(wish.config, config_of(options));
  for (const std::string& pair : options.variables) {
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return fail(Errc::bad_request, "--env '" + pair + "': has no '='",
                  "write it as --env NAME=value");
    }
    const std::string name = pair.substr(0, equals);
    if (!core::is_env_name(name)) {
      return fail(Errc::bad_request, "--env: '" + as_utf8(name) + "' is no name of a variable",
                  "a name has letters, digits and '_', and does not start with a digit");
    }
    wish.variables.emplace_back(name, pair.substr(equals + 1));
  }
  BERTH_TRY(wish.binds, binds_of(options.binds));
  wish.passes_stdin = options.interactive || options.terminal || !console.in_is_terminal;
  wish.terminal = options.terminal;
  wish.quiet = session.flags().quiet;
  return wish;
}

Result<> run_one(Session& session, const SandboxOptions& options, const SandboxCommand& run) {
  session.end_with(exit_not_run);
  Result<SandboxWish> wish = wish_of(session, options);
  if (!wish) {
    if (wish.error().code == Errc::bad_request) session.end_with(static_cast<int>(ExitCode::usage));
    return std::unexpected(std::move(wish).error());
  }
  const Result<int> code = run(*std::move(wish), session.console(), session.config().settings);
  if (!code) {
    if (code.error().code == Errc::timed_out) session.end_with(exit_timed_out);
    Error error = for_one_command(code.error());
    // What fails without a remedy of its own is most often a place that cannot take its folder.
    if (error.code == Errc::sandbox_setup_failed && error.remedy.empty() &&
        !options.binds.empty()) {
      error.remedy =
          "give each --bind a place that the image does not have, or a folder for a folder and a "
          "file for a file; /usr of the image 'host' takes nothing new";
    }
    return std::unexpected(std::move(error));
  }
  session.end_with(*code);
  return {};
}

// What its processes do counts for more than that somebody holds it.
std::string state_of(const bj::value& lease) {
  const bj::value* metadata = lease.as_object().if_contains("metadata");
  const bj::value* frozen = metadata != nullptr && metadata->is_object()
                                ? metadata->get_object().if_contains("frozen")
                                : nullptr;
  const bool is_frozen = frozen != nullptr && frozen->is_bool() && frozen->get_bool();
  return is_frozen ? "frozen" : text_of(lease, "status");
}

void add_level(bj::object& row) {
  const bj::value* isolation = row.if_contains("isolation");
  const bool told = isolation != nullptr && isolation->is_object();
  row["level"] = told ? isolation->at("level") : bj::value(nullptr);
}

// Leases of sandboxes that are not over, each with the facts that matter of one.
Result<bj::array> held_sandboxes(Session& session) {
  BERTH_TRY(const std::string path, session.company_path("environment-leases"));
  BERTH_TRY(const bj::array leases, session.list(path));
  bj::array out;
  for (const bj::value& lease : leases) {
    const auto state = parse_name<core::LeaseState>(text_of(lease, "status"));
    if (text_of(lease, "driver") != "sandbox" || !state || core::is_final(*state)) continue;
    bj::object row = lease.as_object();
    add_level(row);
    row["state"] = state_of(lease);
    out.push_back(std::move(row));
  }
  return out;
}

// Those that no lease holds: they wait for a run, or for their end.
Result<bj::array> kept_sandboxes(Session& session) {
  bj::array out;
  for (const char* status : {"idle", "destroying"}) {
    BERTH_TRY(const std::string path,
              session.company_path("sandboxes?status=" + std::string{status}));
    BERTH_TRY(const bj::array found, session.list(path));
    for (const bj::value& sandbox : found) {
      bj::object row = sandbox.as_object();
      const bool is_parked = !text_of(sandbox, "parkedAt").empty();
      add_level(row);
      row["state"] = text_of(sandbox, "status") == "idle" ? "kept"
                     : is_parked                          ? "not removed"
                                                          : "being removed";
      row["sandboxId"] = text_of(sandbox, "id");
      out.push_back(std::move(row));
    }
  }
  return out;
}

// The name of what a field of each row points to, where the server tells one.
Result<> add_names(Session& session, bj::array& rows, const Kind& kind, const char* from,
                   const char* to) {
  const auto names_one = [&](const bj::value& row) { return !text_of(row, from).empty(); };
  if (std::ranges::none_of(rows, names_one)) return {};
  BERTH_TRY(const std::string path, session.company_path(kind.path));
  BERTH_TRY(const bj::array objects, session.list(path));
  for (bj::value& row : rows) {
    const std::string id = text_of(row, from);
    if (id.empty()) continue;
    const auto found = std::ranges::find_if(
        objects, [&](const bj::value& object) { return text_of(object, "id") == id; });
    row.as_object()[to] = found == objects.end() ? id : text_of(*found, "name");
  }
  return {};
}

Result<bj::array> all_sandboxes(Session& session) {
  BERTH_TRY(bj::array rows, held_sandboxes(session));
  BERTH_TRY(const bj::array kept, kept_sandboxes(session));
  for (const bj::value& row : kept) rows.push_back(row);
  return rows;
}

Result<> list(Session& session) {
  BERTH_TRY(bj::array rows, all_sandboxes(session));
  BERTH_DO(add_names(session, rows, environment_kind(), "environmentId", "environment"));
  BERTH_DO(add_names(session, rows, agent_kind(), "agentId", "agent"));
  session.printer().list(rows, sandbox_kind().columns);
  return {};
}

// By its lease or, where none holds it, by its own id.
Result<> inspect(Session& session, const std::string& named) {
  Result<bj::value> found = session.find_page(lease_kind(), named);
  if (!found && found.error().code == Errc::lease_not_found) {
    found = session.find_page(sandbox_kind(), named);
  }
  if (!found) return std::unexpected(std::move(found).error());
  session.printer().object(*found);
  return {};
}

Result<> remove(Session& session, const std::string& named) {
  BERTH_TRY(const bj::array rows, all_sandboxes(session));
  BERTH_TRY(const bj::value row, choose(rows, named, sandbox_kind()));
  const std::string id = text_of(row, "id");
  BERTH_DO(confirm(session.console(), "Remove sandbox " + id + " with all that is in it?",
                   session.flags().yes));
  const bool is_kept = text_of(row, "sandboxId") == id;
  BERTH_TRY(const bj::value after,
            is_kept ? session.send({.method = "DELETE", .path = "/api/sandboxes/" + id})
                    : session.send({.method = "POST",
                                    .path = "/api/environment-leases/" + id + "/destroy"}));
  if (session.printer().look() == Look::json) session.printer().object(after);
  session.printer().note((is_kept ? "sandbox " : "lease ") + id + " is " +
                         text_of(after, "status") + ": " + text_of(after, "nextStep"));
  return {};
}

// What each of them uses; those that end meanwhile or are with another server are left out.
Result<> stats(Session& session, const std::string& named) {
  static const std::vector<Column> columns{{"LEASE", "id"},
                                           {"CPU MS", "cpuMs"},
                                           {"MEMORY", "memoryBytes"},
                                           {"PEAK", "memoryBytesPeak"},
                                           {"PROCESSES", "processes"},
                                           {"READ", "readBytes"},
                                           {"WRITTEN", "writtenBytes"},
                                           {"OOM KILLS", "oomKills"}};
  bj::array leases;
  if (named.empty()) {
    BERTH_TRY(leases, held_sandboxes(session));
  } else {
    BERTH_TRY(const bj::value lease, session.find(lease_kind(), named));
    leases.push_back(lease);
  }
  bj::array rows;
  for (const bj::value& lease : leases) {
    const std::string id = text_of(lease, "id");
    const auto used = session.get("/api/environment-leases/" + id + "/usage");
    if (!used && (!named.empty() || used.error().code != Errc::conflict)) {
      return std::unexpected(used.error());
    }
    if (!used) {
      // Into a pipe as well: a list that is short without a word is taken for the whole.
      if (!session.flags().quiet) {
        session.console().err << "berth: left out: " << printable(used.error().message) << "\n";
      }
      continue;
    }
    bj::object row = used->as_object();
    row["id"] = id;
    rows.push_back(std::move(row));
  }
  session.printer().list(rows, columns);
  return {};
}

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
      return fail(Errc::bad_request, "--login: what it runs, and where, is given",
                  "write it as berth exec LEASE --login " + options.login);
    }
    return {};
  }
  if (!has_command && !options.terminal) {
    return fail(Errc::bad_request, "no command was given",
                "write it behind two dashes: berth exec LEASE -- COMMAND ARGS");
  }
  if (!options.timeout.empty() && (options.interactive || options.terminal)) {
    return fail(Errc::bad_request, "--timeout: is for commands without -i and -t",
                "leave it out: the command ends with this one");
  }
  return {};
}

// The whole outcome as the server tells it: the output is text there, and cut where it is long.
Result<> exec_as_json(Session& session, const StreamedCommand& wanted) {
  bj::object body{{"argv", encode(wanted.argv)}};
  set_text(body, "cwd", wanted.cwd);
  if (wanted.timeout_ms) body["timeoutMs"] = *wanted.timeout_ms;
  BERTH_TRY(const bj::value ended,
            session.send({.method = "POST",
                          .path = "/api/environment-leases/" + wanted.lease_id + "/exec",
                          .body = std::move(body)}));
  session.printer().object(ended);
  session.end_with(tell_end_of_exec(session, ended));
  return {};
}

// One command in a place that a lease holds, with its output and exit code as if it ran here.
Result<> exec(Session& session, const ExecOptions& options) {
  const auto& command = session.flags().command;
  BERTH_DO(expect_sense(options, command));
  std::optional<std::int64_t> timeout_ms;
  if (!options.timeout.empty()) {
    BERTH_TRY(timeout_ms, parse_span_ms(options.timeout, "--timeout"));
  }
  BERTH_TRY(const std::string id, session.find_id(lease_kind(), options.named));
  session.end_with(exit_not_run);
  StreamedCommand wanted{.lease_id = id,
                         .argv = command.value_or(std::vector<std::string>{}),
                         .cwd = options.cwd,
                         .timeout_ms = timeout_ms};
  const bool is_plain = !options.terminal && !options.interactive && options.login.empty();
  if (is_plain && session.flags().json) return exec_as_json(session, wanted);
  if (options.interactive) wanted.input = StreamedCommand::Input::standard;
  BERTH_TRY(const int code, !options.login.empty() ? log_in(session, id, options.login)
                            : options.terminal
                                ? sit_in_terminal(session, id, wanted.argv, options.cwd)
                                : stream_command(session, wanted));
  session.end_with(code);
  return {};
}

void add_exec(CommandTree& tree) {
  const auto options = std::make_shared<ExecOptions>();
  CLI::App& app =
      tree.leaf(tree.root(), "exec", "run one more command in a place that is held", exec_example,
                [options](Session& session) { return exec(session, *options); });
  app.add_option("lease", options->named, "the id of the lease or the start of it")->required();
  app.add_flag("-i,--interactive", options->interactive, "pass standard input; -t does so too");
  add_choice<core::LoginCommand>(app, "--login", options->login,
                                 "log in an agent's own program, in the sandbox of a plugin");
  app.add_flag("-t,--terminal", options->terminal, "give it a terminal; a shell unless said");
  app.add_option("-C,--cwd", options->cwd, "where it works")->type_name("PATH");
  app.add_option("--timeout", options->timeout, "longest time: 8h unless said")->type_name("TIME");
}

void add_limits(CLI::App& app, SandboxOptions& options) {
  app.add_option("--image", options.image, "what it is built on; 'host' is this machine's /usr")
      ->type_name("IMAGE");
  app.add_option("--memory", options.memory_mb, "memory of all its processes")->type_name("MIB");
  app.add_option("--disk", options.disk_mb,
                 "what it may write: two thirds below /, one third in /tmp and /dev/shm")
      ->type_name("MIB");
  app.add_option("--inodes", options.inodes,
                 "files that it may make; else 256 for each MiB of --disk, at most 750000")
      ->type_name("NUMBER");
  app.add_option("--cpus", options.cpus, "processors, also parts of one")->type_name("NUMBER");
  app.add_option("--pids", options.pids, "processes and threads at a time")->type_name("NUMBER");
  app.add_option("--timeout", options.timeout, "longest time of the command: 90s, 1m30s")
      ->type_name("TIME");
  add_choice<core::LinuxNetwork>(app, "--net", options.network, "none, unless asked for");
  add_choice<core::LinuxUser>(app, "--user", options.user, "who the command is inside");
  add_choice<core::Isolation>(app, "--min-isolation", options.min_isolation,
                              "refuse where less is possible");
  app.add_option("--allow", options.allow,
                 "what it may reach by http and https: host, *.host, host:port, cidr")
      ->type_name("RULE");
  app.add_option("--deny", options.deny, "and what not, though --allow would let it")
      ->type_name("RULE");
  app.add_option("--bind", options.binds, "a folder of this machine that it sees")
      ->type_name("SRC[:DST[:ro|:rw]]");
  app.add_option("--weaken", options.weaken, "take a wall away: ptrace, nested_user_namespaces")
      ->type_name("WHAT");
}

}  // namespace

void add_sandbox_commands(CommandTree& tree, const SandboxCommand& run) {
  CLI::App& group = tree.group("sandbox", "commands in sandboxes of this machine");
  const auto options = std::make_shared<SandboxOptions>();
  CLI::App& runs = tree.leaf(
      group, "run", "run one command in a throwaway sandbox; no server needed", run_example,
      [options, &run](Session& session) { return run_one(session, *options, run); },
      Needs::nothing);
  add_limits(runs, *options);
  runs.add_option("-C,--cwd", options->cwd, "where it works; else in its own folder")
      ->type_name("PATH");
  runs.add_option("--env", options->variables, "a variable of the command")
      ->type_name("NAME=VALUE");
  runs.add_flag("-i,--interactive", options->interactive, "pass standard input from a terminal");
  runs.add_flag("-t,--terminal", options->terminal, "give the command a terminal");
  tree.leaf(group, "ls", "list the sandboxes that are held, and those that are kept for reuse",
            "berth sandbox ls", [](Session& session) { return list(session); });
  const auto counted = std::make_shared<std::string>();
  tree.leaf(group, "stats", "what they use: processors, memory, processes, bytes",
            "berth sandbox stats", [counted](Session& session) { return stats(session, *counted); })
      .add_option("lease", *counted, "only that of this lease");
  const auto named = std::make_shared<std::string>();
  CLI::App& shows = tree.leaf(group, "inspect", "show one: its isolation, config and state",
                              "berth sandbox inspect 0190b5d2",
                              [named](Session& session) { return inspect(session, *named); });
  const auto doomed = std::make_shared<std::string>();
  tree.leaf(group, "rm", "remove one that no run works with, also one that is kept for reuse",
            "berth sandbox rm 0190b5d2 --yes",
            [doomed](Session& session) { return remove(session, *doomed); })
      .add_option("sandbox", *doomed, "its id in 'berth sandbox ls' or the start of it")
      ->required();
  add_exec(tree);
  add_sandbox_lease_commands(tree, group);
  add_snapshot_commands(tree, group);
  shows.add_option("lease", *named, "the id of its lease, or its own, or the start of one")
      ->required();
}

}  // namespace berth::cli
