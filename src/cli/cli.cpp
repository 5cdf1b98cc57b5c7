#include "cli/cli.hpp"

#include "base/clock.hpp"
#include "cli/failure.hpp"
#include "cli/tree.hpp"
#include "cli/version.hpp"

#include <CLI/Error.hpp>

#include <csignal>
#include <ostream>

namespace berth::cli {
namespace {

// `serve` takes every setting as a flag; their names come from the described struct.
void add_serve(CommandTree& tree, GlobalFlags& flags, const ServeCommand& serve) {
  CLI::App& app = tree.leaf(tree.root(), "serve", "run the server",
                            "berth serve --home /srv/berth --listen 127.0.0.1:3100",
                            [&serve](Session& session) -> Result<> {
                              session.end_with(serve(std::move(session.config())));
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

void add_all(CommandTree& tree) {
  add_status_commands(tree);
  add_company_commands(tree);
  add_agent_commands(tree);
  add_environment_commands(tree);
  add_run_commands(tree);
  add_lease_commands(tree);
  add_file_commands(tree);
  add_image_commands(tree);
  add_template_commands(tree);
  add_plugin_commands(tree);
  add_secret_commands(tree);
  add_token_commands(tree);
  add_activity_commands(tree);
  add_settings_commands(tree);
  add_config_commands(tree);
  add_doctor_commands(tree);
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

// The command that the words so far lead to: it is the one whose help would have helped.
std::string deepest(const CLI::App& root) {
  std::string path = root.get_name();
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  return path;
}

// CLI11 reports by throwing; here that becomes an exit code. Nothing: the parse succeeded.
std::optional<int> parse(CommandTree& tree, std::vector<std::string> arguments, Console& console,
                         const GlobalFlags& flags) {
  try {
    std::ranges::reverse(arguments);  // CLI11 takes them from the back
    tree.root().parse(std::move(arguments));
    return std::nullopt;
  } catch (const CLI::Success& success) {
    return tree.root().exit(success, console.out, console.err);
  } catch (const CLI::ParseError& error) {
    return report(console, flags,
                  {.code = Errc::bad_request,
                   .message = error.what(),
                   .remedy = "see '" + deepest(tree.root()) + " --help'"});
  }
}

ConfigInput config_input(const Console& console, const GlobalFlags& flags) {
  ConfigInput input;
  input.flags = flags.settings;
  if (!flags.config_file.empty()) input.file = flags.config_file;
  input.variables = console.variables;
  input.user = console.user;
  input.on_terminal = console.err_is_terminal;  // where the log goes
  return input;
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
  const bool json = flags.json || !console.out_is_terminal;
  const Printer printer{console,
                        {.look = json ? Look::json : Look::people,
                         .colour = wants_colour(console, flags, console.out_is_terminal),
                         .quiet = flags.quiet,
                         .now = SystemClock{}.now()}};
  Session session{console, flags, *std::move(config), printer};
  const Result<> done = tree.chosen()(session);
  console.out.flush();
  const int code = done ? 0 : report(console, flags, done.error());
  return session.exit_code().value_or(code);
}

// Takes away what stands behind `berth run ... --`, `berth sandbox run ... --` and `berth exec ...
// --`: it is a command line of somebody else, in which CLI11 would look for our flags, lists and
// commands.
std::optional<std::vector<std::string>> cut_command(std::vector<std::string>& arguments,
                                                    const CLI::App& root) {
  auto at = arguments.begin();
  while (at != arguments.end() && at->starts_with('-') && *at != "--") {
    const CLI::Option* flag = root.get_option_no_throw(*at);
    const bool takes_next = flag != nullptr && flag->get_items_expected_max() > 0;
    at += takes_next && at + 1 != arguments.end() ? 2 : 1;
  }
  if (at == arguments.end() || (*at != "run" && *at != "sandbox" && *at != "exec"))
    return std::nullopt;
  const auto dashes = std::find(at, arguments.end(), "--");
  if (dashes == arguments.end()) return std::nullopt;
  std::vector<std::string> command{dashes + 1, arguments.end()};
  arguments.erase(dashes, arguments.end());
  return command;
}

}  // namespace

int run(const std::vector<std::string>& arguments, Console& console, const ServeCommand& serve,
        const SandboxCommand& sandbox) {
  GlobalFlags flags;
  CommandTree tree{flags};
  add_serve(tree, flags, serve);
  add_all(tree);
  add_sandbox_commands(tree, sandbox);
  tree.root().set_version_flag("--version", "berth " + std::string{version()},
                               "print the version of this program");
  std::vector<std::string> ours = arguments;
  flags.command = cut_command(ours, tree.root());
  if (const auto ended = parse(tree, std::move(ours), console, flags)) return *ended;
  if (flags.command && !tree.root().get_subcommand("run")->get_subcommands().empty()) {
    return report(console, flags,
                  {.code = Errc::bad_request,
                   .message = "there is nothing to run: what stands behind -- is a command",
                   .remedy = "see 'berth run --help'"});
  }
  return run_chosen(tree, console, flags);
}

int run(int argc, char** argv, const ServeCommand& serve, const SandboxCommand& sandbox) {
  // A reader that goes away must end in an error we can report, not in a signal.
  std::signal(SIGPIPE, SIG_IGN);
  Console console = Console::of_process();
  return run(std::vector<std::string>(argv + 1, argv + argc), console, serve, sandbox);
}

}  // namespace berth::cli
