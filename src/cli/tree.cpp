#include "cli/tree.hpp"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace berth::cli {
namespace {

constexpr auto root_footer = R"(Objects are named by their id, their name, or the start of their id.
A command prints a table on a terminal and JSON into a pipe or with --json.
Secret values and tokens are read from files, pipes or a prompt, not from the command line.

Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  no such object
  4  conflict: taken, in use, ambiguous, or changed by somebody else
  5  not signed in, or not allowed
  6  no server answers
'berth run' ends with the exit code of the command that it ran; see 'berth run --help'.

Example: berth env list)";

}  // namespace

CommandTree::CommandTree(GlobalFlags& flags)
    : root_(std::make_unique<CLI::App>("Decides where the work of AI agents runs.", "berth")) {
  root_->require_subcommand(1);
  root_->footer(root_footer);
  root_->get_formatter()->column_width(34);
  root_->set_help_flag("-h,--help", "show this help");
  root_->add_option("--url", flags.url, "the server to talk to (or BERTH_URL)")->type_name("URL");
  root_
      ->add_option("--token", flags.token,
                   "bearer token; others can see it here, so prefer BERTH_TOKEN")
      ->type_name("TOKEN");
  root_->add_option("--company", flags.company, "the company to work in (or BERTH_COMPANY)")
      ->type_name("COMPANY");
  root_
      ->add_option_function<std::string>(
          "--home", [&flags](const std::string& home) { flags.settings["home"] = home; },
          "folder of the server's data (or BERTH_HOME)")
      ->type_name("DIR");
  root_->add_option("--config-file", flags.config_file, "configuration file (or BERTH_CONFIG)")
      ->type_name("FILE");
  root_->add_option("-n,--limit", flags.limit, "most rows to list")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}).description(""));
  root_->add_flag("--json", flags.json, "print JSON");
  root_->add_flag("--no-color", flags.no_color, "print no colours (or NO_COLOR)");
  root_->add_flag("-q,--quiet", flags.quiet, "print no remarks");
  root_->add_flag("-y,--yes", flags.yes, "do not ask before something is destroyed");
}

CLI::App& CommandTree::group(const std::string& name, const std::string& says) {
  CLI::App* app = root_->add_subcommand(name, says);
  app->require_subcommand(1);
  app->fallthrough();
  return *app;
}

CLI::App& CommandTree::leaf(CLI::App& parent, const std::string& name, const std::string& says,
                            const std::string& example, Action action, Needs needs) {
  CLI::App* app = parent.add_subcommand(name, says);
  app->fallthrough();  // flags of every command may stand behind it
  app->footer("Example: " + example + "\n'berth --help' lists the flags that every command takes.");
  app->callback([this, app, needs, action = std::move(action)] {
    // CLI11 calls the leaf of a command first, then the commands it stands under.
    if (!app->get_subcommands().empty()) return;
    chosen_ = action;
    needs_ = needs;
  });
  return *app;
}

}  // namespace berth::cli
