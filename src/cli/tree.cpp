#include "cli/tree.hpp"

#include "cli/print/words.hpp"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <algorithm>
#include <string_view>

namespace berth::cli {
namespace {

constexpr auto root_footer = R"(Examples:
  berth run uname -a                      run a command where the server chooses
  berth run -it -e Sandbox                a shell in a sandbox
  berth agent invoke coder -p 'fix it' -f a turn of an agent
  berth ps                                the newest runs

An object is named by its name, its id, or either end of its id; 'last' is the newest run.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 conflict, 5 not allowed, 6 no server;
'berth run', 'berth exec' and 'berth sandbox run' end as the command did.)";

// Words that mean the same everywhere, so that no group defines its own.
struct Alias {
  std::string_view name;
  std::vector<const char*> others;
};
const std::vector<Alias>& aliases() {
  static const std::vector<Alias> list = {{"list", {"ls"}},
                                          {"ls", {"list"}},
                                          {"delete", {"rm", "remove"}},
                                          {"rm", {"delete", "remove"}},
                                          {"uninstall", {"rm", "remove", "delete"}},
                                          {"revoke", {"rm", "remove", "delete"}},
                                          {"get", {"show", "inspect"}},
                                          {"inspect", {"get", "show"}}};
  return list;
}

// Below `run` they would hide the programs with the same names: `berth run ls` executes ls.
bool takes_aliases(const CLI::App& parent) {
  return parent.get_parent() != nullptr && parent.get_name() != "run";
}

bool only_shows(std::string_view name) {
  static constexpr std::string_view names[] = {"list",    "ls",     "get",   "status",  "stats",
                                               "inspect", "leases", "usage", "versions"};
  return std::ranges::find(names, name) != std::end(names);
}

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
  root_->add_option("--profile", flags.profile, "a server of 'berth login' (or BERTH_PROFILE)")
      ->type_name("PROFILE");
  root_
      ->add_option_function<std::string>(
          "--home", [&flags](const std::string& home) { flags.settings["home"] = home; },
          "folder of the server's data (or BERTH_HOME)")
      ->type_name("DIR");
  root_->add_option("--config-file", flags.config_file, "configuration file (or BERTH_CONFIG)")
      ->type_name("FILE");
  root_
      ->add_option("-o,--output", flags.output,
                   "how to print: table, wide, name or json (or BERTH_OUTPUT)")
      ->type_name("table|wide|name|json")
      ->check([](const std::string& given) {
        return parse_name<Look>(given) ? std::string{}
                                       : "'" + given + "' is not one of " + names_of<Look>();
      });
  root_->add_option("-n,--limit", flags.limit, "most rows to list")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}).description(""));
  root_->add_flag("--json", flags.json, "the same as -o json");
  root_->add_flag("--watch", flags.watch, "show it again and again, until Ctrl-C");
  root_->add_option("--interval", flags.interval, "seconds between two looks of --watch")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0).description(""));
  root_->add_flag("--no-color", flags.no_color, "print no colours (or NO_COLOR)");
  root_->add_flag("-q,--quiet", flags.quiet, "print no remarks");
  root_->add_flag("-y,--yes", flags.yes, "do not ask before something is destroyed");
}

CLI::App& CommandTree::group(const std::string& name, const std::string& says) {
  CLI::App* app = root_->add_subcommand(name, says);
  app->require_subcommand(1);
  app->fallthrough();
  app->footer("");
  if (!heading_.empty()) app->group(heading_);
  return *app;
}

CLI::App& CommandTree::leaf(CLI::App& parent, const std::string& name, const std::string& says,
                            const std::string& example, Action action, Needs needs) {
  CLI::App* app = parent.add_subcommand(name, says);
  app->fallthrough();  // global flags may follow it
  app->footer("Example: " + example + "\n'berth --help' lists the flags that every command takes.");
  const bool is_top = parent.get_parent() == nullptr;
  app->group(is_top && !heading_.empty() ? heading_ : "Commands");
  // A group shows the example of its first command.
  if (!is_top && parent.get_footer().empty()) {
    parent.footer("Example: " + example.substr(0, example.find('\n')) + "\n'" + path_of(parent) +
                  " COMMAND --help' shows more.");
  }
  for (const Alias& each : takes_aliases(parent) ? aliases() : std::vector<Alias>{}) {
    if (each.name != name) continue;
    for (const char* other : each.others) app->alias(other);
  }
  app->callback([this, app, needs, name, action = std::move(action)] {
    // CLI11 calls a command's leaf first, then its parents.
    if (!app->get_subcommands().empty()) return;
    chosen_ = action;
    needs_ = needs;
    repeats_ = only_shows(name);
  });
  return *app;
}

}  // namespace berth::cli
