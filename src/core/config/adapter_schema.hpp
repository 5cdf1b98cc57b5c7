#pragma once

#include "base/json/config_form.hpp"
#include "core/enums.hpp"

// The config of each adapter, and how it is described to forms.
namespace berth::core {

// What the agent may do without asking. Enumerators have the spelling of the API.
enum class ClaudePermissions { bypass, acceptEdits, auto_, dontAsk, plan, default_ };
BOOST_DESCRIBE_ENUM(ClaudePermissions, bypass, acceptEdits, auto_, dontAsk, plan, default_)
enum class CodexPermissions { bypass, workspaceWrite, readOnly };
BOOST_DESCRIBE_ENUM(CodexPermissions, bypass, workspaceWrite, readOnly)

// Members are in form order. Every adapter ends with the same six.
struct ProcessConfig {
  std::string command;
  std::vector<std::string> args;
  std::optional<std::string> prompt_template;
  std::vector<std::string> path;
  std::optional<std::string> cwd;
  double timeout_sec = 0;
  double grace_sec = 15;
  bj::object env;

  static Notes<ProcessConfig> notes();
};
BOOST_DESCRIBE_STRUCT(ProcessConfig, (),
                      (command, args, prompt_template, path, cwd, timeout_sec, grace_sec, env))

struct ClaudeConfig {
  std::optional<std::string> command;
  std::optional<std::string> model;
  std::optional<ClaudePermissions> permission_mode;
  std::optional<std::string> effort;
  double max_turns_per_run = 0;
  std::optional<bool> dangerously_skip_permissions;
  std::optional<std::string> instructions;
  std::optional<std::string> instructions_file_path;
  double unreachable_sec = 120;
  std::vector<std::string> extra_args;
  std::optional<std::string> prompt_template;
  std::vector<std::string> path;
  std::optional<std::string> cwd;
  double timeout_sec = 0;
  double grace_sec = 15;
  bj::object env;

  static Notes<ClaudeConfig> notes();
};
BOOST_DESCRIBE_STRUCT(ClaudeConfig, (),
                      (command, model, permission_mode, effort, max_turns_per_run,
                       dangerously_skip_permissions, instructions, instructions_file_path,
                       unreachable_sec, extra_args, prompt_template, path, cwd, timeout_sec,
                       grace_sec, env))

struct CodexConfig {
  std::optional<std::string> command;
  std::optional<std::string> model;
  std::optional<CodexPermissions> permission_mode;
  bool network_access = true;
  std::optional<std::string> model_reasoning_effort;
  bool search = false;
  std::optional<bool> dangerously_bypass_approvals_and_sandbox;
  std::optional<std::string> instructions;
  std::optional<std::string> instructions_file_path;
  double unreachable_sec = 120;
  std::vector<std::string> extra_args;
  std::optional<std::string> prompt_template;
  std::vector<std::string> path;
  std::optional<std::string> cwd;
  double timeout_sec = 0;
  double grace_sec = 15;
  bj::object env;

  static Notes<CodexConfig> notes();
};
BOOST_DESCRIBE_STRUCT(CodexConfig, (),
                      (command, model, permission_mode, network_access, model_reasoning_effort,
                       search, dangerously_bypass_approvals_and_sandbox, instructions,
                       instructions_file_path, unreachable_sec, extra_args, prompt_template, path,
                       cwd, timeout_sec, grace_sec, env))

// The fields that the server itself reads, whatever the adapter. In stored form, a value of another
// type counts as absent.
struct AgentSettings {
  std::optional<std::string> model;
  std::optional<std::string> instructions_file_path;
  std::optional<double> timeout_sec;
  double unreachable_sec = 120;
  std::vector<std::string> path;
  std::optional<bj::object> env;
};
BOOST_DESCRIBE_STRUCT(AgentSettings, (),
                      (model, instructions_file_path, timeout_sec, unreachable_sec, path, env))

// An adapter's description, and a JSON Schema of its config.
struct AdapterDescription {
  AdapterType adapter_type = AdapterType::process;
  std::string title = {};
  std::string about = {};
  bj::object config_schema = {};
};
BOOST_DESCRIBE_STRUCT(AdapterDescription, (), (adapter_type, title, about, config_schema))

std::vector<AdapterDescription> describe_adapters();
bj::object adapter_config_schema(AdapterType adapter);
// Adds an issue for each invalid field. Keys that the adapter does not know are left to the caller.
void check_adapter_fields(AdapterType adapter, const bj::object& config, JsonIssues& issues);

// The known key with the most similar spelling, if one is close.
std::optional<std::string> nearest_key(const bj::object& known, std::string_view key);

}  // namespace berth::core
