#include "base/json/peek.hpp"
#include "base/text.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/place.hpp"
#include "cli/commands/variables.hpp"
#include "cli/print/failure.hpp"
#include "cli/run/span.hpp"
#include "cli/run/verdict.hpp"
#include "cli/sandbox_request.hpp"
#include "cli/sandbox_shortfall.hpp"
#include "core/config/bindings.hpp"
#include "core/config/linux_config.hpp"
#include "core/lifecycle.hpp"
#include "images/image_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

namespace berth::cli {
namespace {

constexpr auto sandbox_run_example = R"(berth sandbox run id
berth sandbox run --bind .:/workspace -w /workspace --allow pypi.org --memory 512 make test
berth sandbox run -it

Needs no server: the sandbox is made for this command and goes with it. Standard input is passed
unless it is a terminal (-i passes that too), and Ctrl-C ends the command. Without a command the
entry point and command of the image are run.

Isolation that this machine cannot give is reported on standard error, unless -q is given. A limit
of --memory, --pids or --cpus that is not in force is refused, unless --min-isolation allows less.

Exit codes: those of the command, and
  2        the command line is wrong
  124      it took longer than --timeout
  125      it could not be carried out, or its output was lost; the error says why
  126, 127 the command cannot be executed, or was not found
  128 + n  signal n ended it, or came here and ended it: 130 for Ctrl-C, 143 for SIGTERM)";

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
  VariableFlags variables;
  bool interactive = false;
  bool terminal = false;
  bool removes = false;  // what it always does
};

template <class T>
void set(bj::object& config, const char* key, const std::optional<T>& value) {
  if (value) config[key] = *value;
}

// The flag that sets a config field, and the unit of its numbers.
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

// Rewrites a config error as a command-line error.
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

Result<bj::object> sandbox_config(const SandboxOptions& options) {
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

// SRC[:DST[:ro|:rw]]: the path here, the path inside, and whether it is writable there.
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
  const bool is_alone = rest == source;
  if (!source.empty() && !source.starts_with('/')) {
    std::error_code error;
    source = std::filesystem::absolute(source, error).lexically_normal().string();
    while (source.size() > 1 && source.ends_with('/')) source.pop_back();
    if (is_alone) rest = source;
  }
  if (!source.starts_with('/') || !rest.starts_with('/') || rest.contains(':')) {
    return fail(Errc::bad_request, "--bind '" + text + "': the path inside is not absolute",
                "write it as --bind ./here:/folder/inside or, to keep it as it is, "
                "--bind ./here:/folder/inside:ro");
  }
  bind.source = std::move(source);
  bind.target = std::move(rest);
  return bind;
}

// What can be checked here: two binds with one target, of which only the last would exist.
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

// The image's default command, looked up only when no command was given.
Result<std::vector<std::string>> command_of_image(Context& context, const std::string& image) {
  std::vector<std::string> argv;
  if (!image.empty() && image != images::host_name) {
    BERTH_TRY(const images::ImageStore store,
              images::ImageStore::open(context.config().settings.home + "/images"));
    BERTH_TRY(const images::Image found, store.find(image));
    argv = found.config.entrypoint;
    argv.insert(argv.end(), found.config.cmd.begin(), found.config.cmd.end());
  }
  if (!argv.empty()) return argv;
  return fail(Errc::bad_request, "no command was given, and the image has none of its own",
              "write it behind the flags: berth sandbox run COMMAND ARGS");
}

Result<SandboxRequest> request_of(Context& context, const SandboxOptions& options) {
  std::vector<std::string> argv = context.flags().command.value_or(std::vector<std::string>{});
  if (argv.empty() && options.terminal && options.interactive) argv = {"/bin/sh"};
  if (argv.empty()) {
    BERTH_TRY(argv, command_of_image(context, options.image));
  }
  const Console& console = context.console();
  if (options.terminal && !console.in_is_terminal) {
    return fail(Errc::bad_request, "-t: standard input is not a terminal",
                "leave out -t, or run it from a terminal");
  }
  SandboxRequest request{.config = {}, .argv = std::move(argv), .cwd = options.cwd};
  BERTH_TRY(request.config, sandbox_config(options));
  BERTH_TRY(const std::vector<Variable> variables,
            read_variables(options.variables, console.variables));
  for (const Variable& variable : variables) {
    if (variable.kind == Variable::Kind::secret) {
      return fail(Errc::bad_request, "--var " + variable.name + ": secrets are with a server",
                  "use 'berth run', or give the value: --var " + variable.name + "=value");
    }
    request.variables.emplace_back(variable.name, variable.value);
  }
  BERTH_TRY(request.binds, binds_of(options.binds));
  request.passes_stdin = options.interactive || options.terminal || !console.in_is_terminal;
  request.terminal = options.terminal;
  request.quiet = context.flags().quiet;
  return request;
}

// Looks in the store of the home folder in use; the running server may have another.
bool has_image(Context& context, const std::string& image) {
  if (image.empty() || image == images::host_name) return true;
  const std::string folder = context.config().settings.home + "/images";
  if (::access(folder.c_str(), F_OK) != 0) return false;
  const auto store = images::ImageStore::open(folder);
  return store && store->find(image);
}

Result<> run_one(Context& context, const SandboxOptions& options, const SandboxCommand& run) {
  context.end_with(exit_not_run);
  if (!has_image(context, options.image)) context.adopt_server_home();
  Result<SandboxRequest> request = request_of(context, options);
  if (!request) {
    if (request.error().code == Errc::bad_request)
      context.end_with(static_cast<int>(ExitCode::usage));
    return std::unexpected(std::move(request).error());
  }
  const Result<int> code = run(*std::move(request), context.console(), context.config().settings);
  if (!code) {
    context.end_with(code.error().code == Errc::timed_out ? exit_timed_out
                                                          : exit_code_of_cause(code.error().code));
    Error error = for_one_command(code.error());
    // A failure without its own remedy is usually a --bind whose target cannot be mounted.
    if (error.code == Errc::sandbox_setup_failed && error.remedy.empty() &&
        !options.binds.empty()) {
      error.remedy =
          "give each --bind a place that the image does not have, or a folder for a folder and a "
          "file for a file; /usr of the image 'host' takes nothing new";
    }
    return std::unexpected(std::move(error));
  }
  context.end_with(*code);
  return {};
}

// What its processes do counts for more than that somebody holds it.
std::string lease_state(const bj::value& lease) {
  const auto metadata = peek<bj::object>(lease, "metadata");
  const bool is_frozen = peek<bool>(metadata, "frozen").value_or(false);
  return is_frozen ? "frozen" : text_of(lease, "status");
}

void add_level(bj::object& row) {
  const auto isolation = peek<bj::object>(row, "isolation");
  row["level"] = isolation ? isolation->at("level") : bj::value(nullptr);
}

// Active sandbox leases, each with its relevant facts.
Result<bj::array> held_sandboxes(Context& context) {
  BERTH_TRY(const std::string path, context.company_path("environment-leases"));
  BERTH_TRY(const bj::array leases, context.list(path));
  bj::array out;
  for (const bj::value& lease : leases) {
    const auto state = parse_name<core::LeaseState>(text_of(lease, "status"));
    if (text_of(lease, "driver") != "sandbox" || !state || core::is_final(*state)) continue;
    bj::object row = lease.as_object();
    add_level(row);
    row["state"] = lease_state(lease);
    out.push_back(std::move(row));
  }
  return out;
}

// Sandboxes without a lease: they wait for a run, or for their end.
Result<bj::array> kept_sandboxes(Context& context) {
  bj::array out;
  for (const char* status : {"idle", "destroying"}) {
    BERTH_TRY(const std::string path,
              context.company_path("sandboxes?status=" + std::string{status}));
    BERTH_TRY(const bj::array found, context.list(path));
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

Result<bj::array> all_sandboxes(Context& context) {
  BERTH_TRY(bj::array rows, held_sandboxes(context));
  BERTH_TRY(const bj::array kept, kept_sandboxes(context));
  for (const bj::value& row : kept) rows.push_back(row);
  return rows;
}

Result<> list_sandboxes(Context& context) {
  BERTH_TRY(bj::array rows, all_sandboxes(context));
  context.add_names(rows);
  for (bj::value& row : rows) {
    bj::object& fields = row.as_object();
    for (const auto& [from, to] :
         {std::pair{"environmentName", "environment"}, std::pair{"agentName", "agent"}}) {
      if (fields.contains(from)) fields[to] = bj::value(fields.at(from));
      fields.erase(from);
    }
  }
  context.printer().list(rows, sandbox_kind().columns);
  return {};
}

// By its lease or, where none holds it, by its own id.
Result<> inspect_sandbox(Context& context, const std::string& named) {
  Result<bj::value> found = context.find_page(lease_kind(), named);
  if (!found && found.error().code == Errc::lease_not_found) {
    found = context.find_page(sandbox_kind(), named);
  }
  if (!found) return std::unexpected(std::move(found).error());
  context.printer().object(*found);
  return {};
}

Result<> remove_sandbox(Context& context, const std::string& named) {
  BERTH_TRY(const bj::array rows, all_sandboxes(context));
  BERTH_TRY(const bj::value row, choose(rows, named, sandbox_kind()));
  const std::string id = text_of(row, "id");
  BERTH_DO(confirm(context.console(), "Remove sandbox " + id + " with all that is in it?",
                   context.flags().yes));
  const bool is_kept = text_of(row, "sandboxId") == id;
  BERTH_TRY(const bj::value after,
            is_kept ? context.send({.method = "DELETE", .path = "/api/sandboxes/" + id})
                    : context.send({.method = "POST",
                                    .path = "/api/environment-leases/" + id + "/destroy"}));
  if (context.printer().look() == Look::json) context.printer().object(after);
  context.printer().note((is_kept ? "sandbox " : "lease ") + id + " is " +
                         text_of(after, "status") + ": " + text_of(after, "nextStep"));
  return {};
}

// The resource use of each sandbox; those that end meanwhile or belong to another server are left
// out.
Result<> stats(Context& context, const std::string& named) {
  static const std::vector<Column> columns{{"LEASE", "id"},
                                           {"CPU MS", "cpuMs"},
                                           {"MEMORY", "memoryBytes", Shown::bytes},
                                           {"PEAK", "memoryBytesPeak", Shown::bytes},
                                           {"PROCESSES", "processes"},
                                           {"READ", "readBytes", Shown::bytes},
                                           {"WRITTEN", "writtenBytes", Shown::bytes},
                                           {"OOM KILLS", "oomKills"}};
  bj::array leases;
  if (named.empty()) {
    BERTH_TRY(leases, held_sandboxes(context));
  } else {
    BERTH_TRY(const std::string id, find_place(context, named));
    leases.push_back(bj::object{{"id", id}});
  }
  bj::array rows;
  for (const bj::value& lease : leases) {
    const std::string id = text_of(lease, "id");
    const auto used = context.get("/api/environment-leases/" + id + "/usage");
    if (!used && (!named.empty() || used.error().code != Errc::conflict)) {
      return std::unexpected(used.error());
    }
    if (!used) {
      // Also into a pipe: a list that was shortened silently is taken for the whole.
      if (!context.flags().quiet) {
        context.console().err << "berth: left out: " << printable(used.error().message) << "\n";
      }
      continue;
    }
    bj::object row = used->as_object();
    row["id"] = id;
    rows.push_back(std::move(row));
  }
  context.printer().list(rows, columns);
  return {};
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
      ->type_name("RULE")
      ->allow_extra_args(false);
  app.add_option("--deny", options.deny, "and what not, though --allow would let it")
      ->type_name("RULE")
      ->allow_extra_args(false);
  app.add_option("-v,--bind,--volume", options.binds, "a folder of this machine that it sees")
      ->type_name("SRC[:DST[:ro|:rw]]")
      ->allow_extra_args(false);
  app.add_option("--weaken", options.weaken, "take a wall away: ptrace, nested_user_namespaces")
      ->type_name("WHAT")
      ->allow_extra_args(false);
}

}  // namespace

void add_sandbox_commands(CommandTree& tree, const SandboxCommand& run) {
  CLI::App& group = tree.group("sandbox", "sandboxes: try, look into, capture and remove them");
  const auto options = std::make_shared<SandboxOptions>();
  CLI::App& runs = tree.leaf(
      group, "run", "run one command in a throwaway sandbox; no server needed", sandbox_run_example,
      [options, &run](Context& context) { return run_one(context, *options, run); },
      Needs::nothing);
  add_limits(runs, *options);
  add_workdir_flag(runs, options->cwd, "where it works; else in its own folder");
  add_variable_flags(runs, options->variables);
  add_old_name(runs, "--env", options->variables.old_given);
  runs.add_flag("-i,--interactive", options->interactive, "pass standard input from a terminal");
  runs.add_flag("-t,--tty", options->terminal, "give the command a terminal; -it alone is a shell");
  runs.add_flag("--terminal", options->terminal)->group("");
  runs.add_flag("--rm", options->removes)->group("");
  tree.leaf(group, "ls", "list the sandboxes that are held, and those that are kept for reuse",
            "berth sandbox ls", [](Context& context) { return list_sandboxes(context); });
  const auto counted = std::make_shared<std::string>();
  tree.leaf(group, "stats", "what they use: processors, memory, processes, bytes",
            "berth sandbox stats", [counted](Context& context) { return stats(context, *counted); })
      .add_option("place", *counted, place_words);
  const auto named = std::make_shared<std::string>();
  CLI::App& shows = tree.leaf(group, "inspect", "show one: its isolation, config and state",
                              "berth sandbox inspect 44f87a21", [named](Context& context) {
                                return inspect_sandbox(context, *named);
                              });
  const auto doomed = std::make_shared<std::string>();
  tree.leaf(group, "rm", "remove one that no run works with, also one that is kept for reuse",
            "berth sandbox rm 44f87a21 --yes",
            [doomed](Context& context) { return remove_sandbox(context, *doomed); })
      .add_option("sandbox", *doomed, "its id in 'berth sandbox ls' or the start of it")
      ->required();
  add_sandbox_lease_commands(tree, group);
  add_snapshot_commands(tree, group);
  shows.add_option("sandbox", *named, "its id in 'berth sandbox ls', or an end of it")->required();
}

}  // namespace berth::cli
