#pragma once

#include "base/names.hpp"
#include "cli/context.hpp"
#include "cli/sandbox_request.hpp"

#include <CLI/App.hpp>

#include <functional>
#include <memory>
#include <string>

namespace berth::cli {

using Action = std::function<Result<>(Context&)>;

// Most commands refuse to run with an invalid configuration; some must work nevertheless.
enum class Needs { configuration, nothing };

// The command line as a tree. A leaf carries its action; parsing chooses one and runs nothing.
class CommandTree {
 public:
  explicit CommandTree(GlobalFlags& flags);

  CLI::App& root() { return *root_; }
  const CLI::App& root() const { return *root_; }
  // The commands that follow are listed under this heading in the help.
  void heading(const std::string& title) { heading_ = title; }
  CLI::App& group(const std::string& name, const std::string& says);
  // The flags of a leaf are bound to `options`, which its action reads after parsing.
  CLI::App& leaf(CLI::App& parent, const std::string& name, const std::string& says,
                 const std::string& example, Action action, Needs needs = Needs::configuration);
  // Empty before a successful parse.
  const Action& chosen() const { return chosen_; }
  Needs needs() const { return needs_; }
  // Whether the chosen command only shows something, so that --watch may repeat it.
  bool repeats() const { return repeats_; }

 private:
  std::unique_ptr<CLI::App> root_;
  Action chosen_;
  Needs needs_ = Needs::configuration;
  bool repeats_ = false;
  std::string heading_;
};

// An option with a closed set of values, all listed in the help and in the completion.
template <DescribedEnum E>
CLI::Option* add_choice(CLI::App& app, const std::string& flag, std::string& target,
                        const std::string& says) {
  std::string names;
  for (const E value : all<E>()) names += (names.empty() ? "" : "|") + std::string{name_of(value)};
  const auto check = [](const std::string& given) {
    return parse_name<E>(given) ? std::string{} : "'" + given + "' is not one of " + names_of<E>();
  };
  return app.add_option(flag, target, says)->type_name(names)->check(check);
}

// Each command group has its own file under commands/.
void add_status_commands(CommandTree& tree);
void add_company_commands(CommandTree& tree);
void add_agent_commands(CommandTree& tree);
void add_environment_commands(CommandTree& tree);
void add_run_commands(CommandTree& tree);
void add_exec_command(CommandTree& tree);
void add_lease_commands(CommandTree& tree);
void add_file_commands(CommandTree& tree);
void add_image_commands(CommandTree& tree);
void add_secret_commands(CommandTree& tree);
void add_token_commands(CommandTree& tree);
void add_activity_commands(CommandTree& tree);
void add_settings_commands(CommandTree& tree);
void add_config_commands(CommandTree& tree);
void add_completion_commands(CommandTree& tree);
void add_login_commands(CommandTree& tree);
void add_doctor_commands(CommandTree& tree);
// Commands for one lease's sandbox, in the group `sandbox`.
void add_sandbox_lease_commands(CommandTree& tree, CLI::App& group);
// Commands for a sandbox as a whole, in the same group; and for captured templates.
void add_snapshot_commands(CommandTree& tree, CLI::App& sandbox);
void add_template_commands(CommandTree& tree);
// Commands for an environment's custom image, in the group `env`.
void add_setup_commands(CommandTree& tree, CLI::App& environments);
void add_key_commands(CommandTree& tree, CLI::App& environments);
void add_plugin_commands(CommandTree& tree);
// For plugin authors, in the group `plugin`.
void add_plugin_dev_commands(CommandTree& tree, CLI::App& group);
// `run` outlives the tree.
void add_sandbox_commands(CommandTree& tree, const SandboxCommand& run);

}  // namespace berth::cli
