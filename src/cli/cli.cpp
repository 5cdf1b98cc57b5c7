#include "cli/cli.hpp"

#include "base/clock.hpp"
#include "cli/print/failure.hpp"
#include "cli/print/words.hpp"
#include "cli/tree.hpp"
#include "cli/version.hpp"

#include <CLI/Error.hpp>

#include <poll.h>

#include <csignal>
#include <ostream>

namespace berth::cli {
namespace {

// `serve` accepts every setting as a flag; the names come from the described struct.
void add_serve(CommandTree& tree, GlobalFlags& flags, const ServeCommand& serve) {
  CLI::App& app = tree.leaf(tree.root(), "serve", "run the server",
                            "berth serve --home /srv/berth --listen 127.0.0.1:3100",
                            [&serve](Context& context) -> Result<> {
                              context.end_with(serve(std::move(context.config())));
                              return {};
                            });
  boost::mp11::mp_for_each<MembersOf<Settings>>([&](auto member) {
    const std::string name = member.name;
    if (name == "home") return;  // a flag of every command
    const auto keep = [&flags, name](const std::string& text) { flags.settings[name] = text; };
    app.add_option_function<std::string>(flag_of(name), keep, std::string{explain(name)})
        ->type_name("VALUE");
  });
}

// In the order in which the help lists them.
void add_all(CommandTree& tree, const SandboxCommand& sandbox) {
  tree.heading("Run work");
  add_run_commands(tree);
  add_exec_command(tree);
  add_file_commands(tree);
  add_agent_commands(tree);
  tree.heading("Places");
  add_environment_commands(tree);
  add_sandbox_commands(tree, sandbox);
  add_lease_commands(tree);
  add_image_commands(tree);
  add_template_commands(tree);
  add_plugin_commands(tree);
  tree.heading("Access");
  add_login_commands(tree);
  add_secret_commands(tree);
  add_token_commands(tree);
  add_company_commands(tree);
  tree.heading("Server and program");
  add_status_commands(tree);
  add_doctor_commands(tree);
  add_activity_commands(tree);
  add_settings_commands(tree);
  add_config_commands(tree);
  add_completion_commands(tree);
}

bool wants_colour(const Console& console, const GlobalFlags& flags, bool is_terminal) {
  const auto no_color = console.variables.find("NO_COLOR");
  const bool refused = no_color != console.variables.end() && !no_color->second.empty();
  return is_terminal && !flags.no_color && !refused;
}

int report(Console& console, const GlobalFlags& flags, const Error& error) {
  if (flags.json) {
    console.err << error_json(error);
  } else {
    console.err << error_text(error, wants_colour(console, flags, console.err_is_terminal));
  }
  return static_cast<int>(exit_code_of(error.code));
}

// The command that the words so far lead to: its help is the most useful one.
const CLI::App& deepest(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

Error usage_error(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = deepest(root);
  // A misspelt flag is often the reason why another is missing.
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  for (const std::string& word : root.remaining(true)) {
    if (word != "--" && (is_extra || word.starts_with("--"))) return unexpected_word(app, word);
  }
  return {.code = Errc::bad_request,
          .message = error.what(),
          .remedy = "see '" + path_of(app) + " --help'"};
}

// CLI11 reports by throwing; here that becomes an exit code. Nothing: the parse succeeded.
std::optional<int> parse_words(CommandTree& tree, std::vector<std::string> arguments,
                               Console& console, const GlobalFlags& flags) {
  try {
    std::ranges::reverse(arguments);  // CLI11 reads them from the back
    tree.root().parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::Success& success) {
    return tree.root().exit(success, console.out, console.err);
  } catch (const CLI::ParseError& error) {
    return report(console, flags, usage_error(tree.root(), error));
  }
}

ConfigInput config_input(const Console& console, const GlobalFlags& flags) {
  ConfigInput input;
  input.flags = flags.settings;
  if (!flags.config_file.empty()) input.file = flags.config_file;
  input.variables = console.variables;
  input.user = console.user;
  input.on_terminal = console.err_is_terminal;  // where log lines are written
  return input;
}

// A flag wins over --json, that over BERTH_OUTPUT. A pipe changes nothing.
Result<Look> console_look(const Console& console, const GlobalFlags& flags) {
  std::string name = flags.output;
  if (name.empty() && flags.json) return Look::json;
  if (name.empty()) {
    const auto found = console.variables.find("BERTH_OUTPUT");
    if (found == console.variables.end() || found->second.empty()) return Look::table;
    name = found->second;
  }
  if (const auto look = parse_name<Look>(name)) return *look;
  return fail(Errc::bad_request, "BERTH_OUTPUT: '" + name + "' is not one of " + names_of<Look>(),
              "unset it, or give one of these");
}

constexpr auto clear_screen = "\x1b[H\x1b[2J";

// Shows it repeatedly, until the caller ends it, the reader closes the pipe or it fails.
Result<> watch(const CommandTree& tree, Context& context) {
  if (!tree.repeats()) {
    return fail(Errc::bad_request, "--watch: this command does something, so it is not repeated",
                "use --watch with commands that show: list, get, status, stats, inspect");
  }
  Console& console = context.console();
  while (true) {
    if (console.out_is_terminal) console.out << clear_screen;
    BERTH_DO(tree.chosen()(context));
    console.out << std::flush;
    if (!console.out.good()) return {};
    ::poll(nullptr, 0, static_cast<int>(context.flags().interval * 1000));
    context.printer().set_now(SystemClock{}.now());
  }
}

int run_chosen(const CommandTree& tree, Console& console, GlobalFlags flags) {
  Result<Config> config = load_config(config_input(console, flags));
  if (!config) {
    if (tree.needs() == Needs::configuration) return report(console, flags, config.error());
    flags.config_error = std::move(config).error();
    config = Config{};
  }
  if (!flags.quiet && !flags.json) {
    for (const std::string& warning : config->warnings)
      console.err << "warning: " << warning << "\n";
  }
  const Result<Look> look = console_look(console, flags);
  if (!look) return report(console, flags, look.error());
  // The flag for JSON covers everything, including errors and run results.
  if (flags.output == name_of(Look::json)) flags.json = true;
  const Printer printer{console,
                        {.look = *look,
                         .colour = wants_colour(console, flags, console.out_is_terminal),
                         .quiet = flags.quiet,
                         .now = SystemClock{}.now()}};
  Context context{console, flags, *std::move(config), printer};
  const Result<> done = flags.watch ? watch(tree, context) : tree.chosen()(context);
  console.out.flush();
  const int code = done ? 0 : report(console, flags, done.error());
  const Result<> undone = context.finish();
  if (!undone) report(console, flags, undone.error());
  return context.exit_code().value_or(code);
}

}  // namespace

int run(const std::vector<std::string>& arguments, Console& console, const ServeCommand& serve,
        const SandboxCommand& sandbox) {
  GlobalFlags flags;
  CommandTree tree{flags};
  add_all(tree, sandbox);
  add_serve(tree, flags, serve);
  tree.root().set_version_flag("--version", "berth " + std::string{version()},
                               "print the version of this program");
  Result<Words> words = read_words(arguments, tree.root());
  if (!words) return report(console, flags, words.error());
  flags.command = std::move(words->command);
  if (const auto ended = parse_words(tree, std::move(words->ours), console, flags)) {
    // Without a word the help is shown, but nothing was done.
    return arguments.empty() ? static_cast<int>(ExitCode::usage) : *ended;
  }
  return run_chosen(tree, console, flags);
}

int run(int argc, char** argv, const ServeCommand& serve, const SandboxCommand& sandbox) {
  // A closed pipe must end in an error we can report, not in a signal.
  std::signal(SIGPIPE, SIG_IGN);
  Console console = Console::of_process();
  return run(std::vector<std::string>(argv + 1, argv + argc), console, serve, sandbox);
}

}  // namespace berth::cli
