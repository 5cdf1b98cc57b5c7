#include "core/config/adapters.hpp"

#include "base/json/peek.hpp"
#include "core/config/adapter_schema.hpp"
#include "core/output/agent_output.hpp"

#include <algorithm>
#include <iterator>

namespace berth::core {
namespace {

constexpr std::string_view prompt_default =
    "You are {{agent.name}} (agent {{agent.id}}). Continue with your work.";

// Text that holds nothing counts as absent.
std::optional<std::string> filled(const std::optional<std::string>& text) {
  return text && !text->empty() ? text : std::nullopt;
}

std::int64_t to_ms(double seconds) {
  return static_cast<std::int64_t>(std::clamp(seconds, 0.0, 1e9) * 1000);
}

void add(std::vector<std::string>& argv, std::string_view flag,
         const std::optional<std::string>& value) {
  if (!value) return;
  argv.emplace_back(flag);
  argv.push_back(*value);
}

void add_all(std::vector<std::string>& argv, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(argv));
}

// What is stored may be older than the rule for it.
std::optional<std::string> session_to_resume(const InvocationFacts& facts) {
  if (!facts.resume_session || !is_session_id(*facts.resume_session)) return std::nullopt;
  return facts.resume_session;
}

bool mentions(const std::vector<std::string>& arguments,
              std::initializer_list<std::string_view> flags) {
  return std::ranges::any_of(arguments, [&](const std::string& argument) {
    const std::string_view flag = std::string_view{argument}.substr(0, argument.find('='));
    return std::ranges::find(flags, flag) != flags.end();
  });
}

// `old_flag` is from older configs and allowed everything. Set to false, it asks for less than the
// default.
template <class Permissions>
Permissions permissions_of(const std::optional<Permissions>& mode,
                           const std::optional<bool>& old_flag, Permissions without) {
  if (mode) return *mode;
  return old_flag == false ? without : Permissions::bypass;
}

// A mode of an older row that is not known must not turn into the one that allows everything.
template <class Permissions>
Result<> expect_known_permissions(const bj::object& config) {
  const auto named = filled(peek<std::string>(config, "permissionMode"));
  if (!named || parse_name<Permissions>(*named)) return {};
  return fail(Errc::unprocessable,
              "/adapterConfig/permissionMode is " + in_quotes(*named) + ", expected one of " +
                  names_of<Permissions>(),
              "correct the config of the agent");
}

// As root, Claude refuses to skip its permissions unless told that it is in a sandbox. For
// root outside a sandbox, its tools are allowed one by one.
constexpr std::string_view claude_tools =
    "Bash,Edit,Glob,Grep,LS,MultiEdit,NotebookEdit,Read,Task,TodoWrite,WebFetch,WebSearch,Write";

void add_claude_permissions(std::vector<std::string>& argv, const ClaudeConfig& config,
                            const InvocationPlace& place) {
  if (mentions(config.extra_args,
               {"--permission-mode", "--dangerously-skip-permissions", "--allowedTools",
                "--allowed-tools", "--permission-prompt-tool"})) {
    return;
  }
  using enum ClaudePermissions;
  const ClaudePermissions mode =
      permissions_of(config.permission_mode, config.dangerously_skip_permissions, default_);
  if (mode == default_) return;
  if (mode != bypass) {
    add(argv, "--permission-mode", std::string{name_of(mode)});
  } else if (place.is_root && !place.is_sandbox) {
    add(argv, "--permission-mode", "acceptEdits");
    add(argv, "--allowedTools", std::string{claude_tools});
  } else {
    argv.emplace_back("--dangerously-skip-permissions");
  }
}

std::optional<std::string> instructions_of(const std::optional<std::string>& given,
                                           const InvocationFacts& facts) {
  auto text = filled(given);
  if (!facts.instructions_file || facts.instructions_file->empty()) return text;
  return text ? *facts.instructions_file + "\n\n" + *text : *facts.instructions_file;
}

Invocation claude_invocation(const ClaudeConfig& config, const InvocationFacts& facts) {
  // No positional argument may follow: Claude would put it before what it reads from stdin.
  std::vector<std::string> argv{filled(config.command).value_or("claude"), "--print",
                                "--output-format", "stream-json", "--verbose"};
  add(argv, "--resume", session_to_resume(facts));
  add_claude_permissions(argv, config, facts.place);
  add(argv, "--model", filled(config.model));
  add(argv, "--effort", filled(config.effort));
  if (config.max_turns_per_run >= 1) {
    add(argv, "--max-turns", std::to_string(static_cast<std::int64_t>(config.max_turns_per_run)));
  }
  std::vector<std::string> shown = argv;
  // The text is not part of a session, so it is sent with each turn.
  if (const auto instructions = instructions_of(config.instructions, facts)) {
    add(argv, "--append-system-prompt", *instructions);
    add(shown, "--append-system-prompt",
        "[instructions, " + std::to_string(instructions->size()) + " bytes]");
  }
  add_all(argv, config.extra_args);
  add_all(shown, config.extra_args);
  Invocation out{.argv = std::move(argv), .shown_argv = std::move(shown)};
  // Without this, the program contacts Anthropic in addition to the server it was given.
  out.environment["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1";
  if (facts.place.is_sandbox) out.environment["IS_SANDBOX"] = "1";
  return out;
}

void add_codex_permissions(std::vector<std::string>& argv, const CodexConfig& config,
                           const InvocationPlace& place) {
  if (mentions(config.extra_args, {"-s", "--sandbox", "--full-auto", "--yolo",
                                   "--dangerously-bypass-approvals-and-sandbox"})) {
    return;
  }
  using enum CodexPermissions;
  const CodexPermissions mode = permissions_of(
      config.permission_mode, config.dangerously_bypass_approvals_and_sandbox, workspaceWrite);
  // Its own sandbox cannot be created inside another one, which already isolates it.
  if (mode == bypass || (mode == workspaceWrite && place.is_sandbox)) {
    argv.emplace_back("--dangerously-bypass-approvals-and-sandbox");
  } else if (mode == workspaceWrite) {
    add(argv, "-s", "workspace-write");
    if (config.network_access) {
      add(argv, "-c", "sandbox_workspace_write.network_access=true");
    }
  } else {
    add(argv, "-s", "read-only");
  }
}

Invocation codex_invocation(const CodexConfig& config, const InvocationFacts& facts) {
  std::vector<std::string> argv{filled(config.command).value_or("codex")};
  if (config.search) argv.emplace_back("--search");  // only valid before the subcommand
  // A workspace need not be a repository; without this, codex refuses to work outside one. The two
  // settings stop its calls to hosts other than the model's.
  add_all(argv, {"exec", "--json", "--skip-git-repo-check", "-c", "features.plugins=false", "-c",
                 "analytics.enabled=false"});
  add_codex_permissions(argv, config, facts.place);
  add(argv, "--model", filled(config.model));
  if (const auto effort = filled(config.model_reasoning_effort)) {
    // The value is TOML, where strings are quoted.
    add(argv, "-c", "model_reasoning_effort=" + encode_text(*effort));
  }
  add_all(argv, config.extra_args);  // `resume` knows only some of the options
  if (const auto session = session_to_resume(facts)) add_all(argv, {"resume", *session});
  argv.emplace_back("-");
  Invocation out{.argv = argv, .shown_argv = std::move(argv)};
  // Codex has no option for instructions.
  if (const auto instructions = instructions_of(config.instructions, facts)) {
    out.stdin_text = *instructions + "\n\n";
  }
  return out;
}

std::vector<std::string> process_argv(const ProcessConfig& config) {
  std::vector<std::string> argv;
  if (!config.command.empty()) argv.push_back(config.command);
  add_all(argv, config.args);
  return argv;
}

// The fields that every adapter has, read from a stored config.
struct CommonFields {
  std::optional<std::string> prompt_template;
  std::optional<std::string> cwd;
  double timeout_sec = 0;
  double grace_sec = 15;
};
BOOST_DESCRIBE_STRUCT(CommonFields, (), (prompt_template, cwd, timeout_sec, grace_sec))

Result<std::string> prompt_of(AdapterType adapter, const CommonFields& config,
                              const InvocationFacts& facts) {
  if (facts.prompt) return *facts.prompt;
  const auto custom = filled(config.prompt_template);
  if (!custom && adapter == AdapterType::process) return std::string{};
  auto prompt = render_template(custom.value_or(std::string{prompt_default}), facts.prompt_facts);
  if (prompt) return *std::move(prompt);
  return fail(Errc::unprocessable,
              "The prompt made of promptTemplate has more than " +
                  std::to_string(prompt_bytes_max) + " bytes",
              "name long values of the payload less often, or send a shorter payload");
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

const bj::value* find_dotted(const bj::object& facts, std::string_view path) {
  const bj::object* object = &facts;
  for (;;) {
    const std::size_t dot = path.find('.');
    if (object == nullptr) return nullptr;
    const auto found = object->find(path.substr(0, dot));
    if (found == object->end()) return nullptr;
    if (dot == std::string_view::npos) return &found->value();
    object = found->value().if_object();
    path.remove_prefix(dot + 1);
  }
}

std::string fact_text(const bj::value* value) {
  if (value == nullptr || value->is_null()) return {};
  if (value->is_string()) return std::string{value->get_string()};
  return encode_text(*value);
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_path(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view{"._-"}.contains(c);
  });
}

}  // namespace

std::optional<std::string> render_template(std::string_view text, const bj::object& facts) {
  std::string out;
  while (out.size() <= prompt_bytes_max) {
    const std::size_t open = text.find("{{");
    if (open == text.npos) {
      out += text;
      break;
    }
    const std::string_view inner = text.substr(open + 2);
    const std::size_t end = std::min(inner.find_first_of("{}"), inner.size());
    const std::string_view path = without_blanks(inner.substr(0, end));
    if (!inner.substr(end).starts_with("}}") || !is_path(path)) {
      out += text.substr(0, open + 1);  // the second brace may open a placeholder
      text.remove_prefix(open + 1);
      continue;
    }
    out += text.substr(0, open);
    out += fact_text(find_dotted(facts, path));
    text.remove_prefix(open + 2 + end + 2);
  }
  return out.size() <= prompt_bytes_max ? std::optional{std::move(out)} : std::nullopt;
}

Result<> check_argv(const std::vector<std::string>& argv) {
  if (argv.empty() || argv.front().empty()) {
    return fail(Errc::unprocessable, "the run has no command", "name the program to run");
  }
  std::size_t total = 0;
  for (const std::string& argument : argv) {
    if (argument.contains('\0')) {
      return fail(Errc::unprocessable,
                  "argument " + in_quotes(argument) + " holds a NUL, where an argument ends",
                  "pass such bytes on stdin or in a file");
    }
    if (argument.size() > argument_bytes_max) {
      return fail(Errc::unprocessable,
                  "argument " + in_quotes(argument) + " has " + std::to_string(argument.size()) +
                      " bytes; a process takes at most " + std::to_string(argument_bytes_max),
                  "pass large values on stdin or in a file");
    }
    total += argument.size() + 1;
  }
  if (total <= argv_bytes_max) return {};
  return fail(Errc::unprocessable,
              "the arguments have " + std::to_string(total) + " bytes together; the limit is " +
                  std::to_string(argv_bytes_max),
              "pass large values on stdin or in a file");
}

Result<> check_prompt(AdapterType adapter, const bj::object& config, const InvocationFacts& facts) {
  if (adapter == AdapterType::process) return {};
  BERTH_TRY(const std::string prompt,
            prompt_of(adapter, read_loosely<CommonFields>(config), facts));
  if (!is_blank(prompt)) return {};
  const std::string source = facts.prompt ? "The prompt" : "The prompt made of promptTemplate";
  return fail(Errc::unprocessable, source + " is empty",
              "say in the prompt what the agent is to do");
}

Result<Invocation> build_invocation(AdapterType adapter, const bj::object& config,
                                    const InvocationFacts& facts) {
  const auto common = read_loosely<CommonFields>(config);
  BERTH_DO(check_prompt(adapter, config, facts));
  Invocation out{.argv = {}};
  switch (adapter) {
    case AdapterType::process:
      out.argv = out.shown_argv = process_argv(read_loosely<ProcessConfig>(config));
      break;
    case AdapterType::claude_local:
      BERTH_DO(expect_known_permissions<ClaudePermissions>(config));
      out = claude_invocation(read_loosely<ClaudeConfig>(config), facts);
      break;
    case AdapterType::codex_local:
      BERTH_DO(expect_known_permissions<CodexPermissions>(config));
      out = codex_invocation(read_loosely<CodexConfig>(config), facts);
      break;
  }
  BERTH_DO(check_argv(out.argv));
  BERTH_TRY(out.prompt, prompt_of(adapter, common, facts));
  out.stdin_text += out.prompt;
  out.cwd = filled(common.cwd);
  if (const std::int64_t timeout_ms = to_ms(common.timeout_sec); timeout_ms > 0) {
    out.timeout_ms = timeout_ms;
  }
  // At least a second, so that a program that is asked to end can do so.
  out.grace_ms = std::max<std::int64_t>(1000, to_ms(common.grace_sec));
  return out;
}

}  // namespace berth::core
