#include "core/adapters.hpp"

#include "core/agent_output.hpp"

#include <algorithm>
#include <iterator>

namespace berth::core {
namespace {

constexpr std::string_view prompt_default =
    "You are {{agent.name}} (agent {{agent.id}}). Continue with your work.";

// Reads the fields that an adapter knows; what has another type counts as absent.
class Config {
 public:
  explicit Config(const bj::object& config) : config_(config) {}

  std::optional<std::string> text(std::string_view key) const {
    const bj::value* value = config_.if_contains(key);
    if (value == nullptr || !value->is_string() || value->get_string().empty()) return std::nullopt;
    return std::string{value->get_string()};
  }

  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> out;
    const bj::value* value = config_.if_contains(key);
    if (value == nullptr || !value->is_array()) return out;
    for (const bj::value& item : value->get_array()) {
      if (item.is_string()) out.emplace_back(item.get_string());
    }
    return out;
  }

  double number(std::string_view key, double absent) const {
    const bj::value* value = config_.if_contains(key);
    return value != nullptr && value->is_number() ? value->to_number<double>() : absent;
  }

  bool is_set(std::string_view key) const {
    const bj::value* value = config_.if_contains(key);
    return value != nullptr && value->is_bool() && value->get_bool();
  }

 private:
  const bj::object& config_;
};

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
std::optional<std::string> session_of(const InvocationFacts& facts) {
  if (!facts.resume_session || !is_session_id(*facts.resume_session)) return std::nullopt;
  return facts.resume_session;
}

std::vector<std::string> claude_argv(const Config& config, const InvocationFacts& facts) {
  std::vector<std::string> argv{config.text("command").value_or("claude"),
                                "--print",
                                "-",
                                "--output-format",
                                "stream-json",
                                "--verbose"};
  add(argv, "--resume", session_of(facts));
  if (config.is_set("dangerouslySkipPermissions")) {
    argv.emplace_back("--dangerously-skip-permissions");
  }
  add(argv, "--model", config.text("model"));
  add(argv, "--effort", config.text("effort"));
  if (const double turns = config.number("maxTurnsPerRun", 0); turns >= 1) {
    add(argv, "--max-turns", std::to_string(static_cast<std::int64_t>(turns)));
  }
  add(argv, "--append-system-prompt-file", config.text("instructionsFilePath"));
  add_all(argv, config.texts("extraArgs"));
  return argv;
}

std::vector<std::string> codex_argv(const Config& config, const InvocationFacts& facts) {
  std::vector<std::string> argv{config.text("command").value_or("codex")};
  if (config.is_set("search")) argv.emplace_back("--search");  // known before the subcommand only
  // A workspace need not be a repository; without this, codex refuses to work in one that is none.
  add_all(argv, {"exec", "--json", "--skip-git-repo-check"});
  if (config.is_set("dangerouslyBypassApprovalsAndSandbox")) {
    argv.emplace_back("--dangerously-bypass-approvals-and-sandbox");
  }
  add(argv, "--model", config.text("model"));
  if (const auto effort = config.text("modelReasoningEffort")) {
    // The value is TOML, where a string stands in quotes.
    add(argv, "-c", "model_reasoning_effort=" + encode_text(*effort));
  }
  add_all(argv, config.texts("extraArgs"));
  if (const auto session = session_of(facts)) add_all(argv, {"resume", *session});
  argv.emplace_back("-");
  return argv;
}

std::vector<std::string> process_argv(const Config& config) {
  std::vector<std::string> argv;
  if (const auto command = config.text("command")) argv.push_back(*command);
  add_all(argv, config.texts("args"));
  return argv;
}

std::string prompt_of(AdapterType adapter, const Config& config, const InvocationFacts& facts) {
  if (facts.prompt) return *facts.prompt;
  const auto custom = config.text("promptTemplate");
  if (!custom && adapter == AdapterType::process) return {};
  return render_template(custom.value_or(std::string{prompt_default}), facts.prompt_facts);
}

const bj::value* find_path(const bj::object& facts, std::string_view path) {
  const bj::object* object = &facts;
  for (;;) {
    const std::size_t dot = path.find('.');
    const bj::value* value = object != nullptr ? object->if_contains(path.substr(0, dot)) : nullptr;
    if (dot == std::string_view::npos || value == nullptr) return value;
    object = value->if_object();
    path.remove_prefix(dot + 1);
  }
}

std::string text_of(const bj::value* value) {
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

std::string render_template(std::string_view text, const bj::object& facts) {
  std::string out;
  for (;;) {
    const std::size_t open = text.find("{{");
    const std::size_t close = open == text.npos ? text.npos : text.find("}}", open + 2);
    if (close == text.npos) return out += text;
    const std::string_view path = without_blanks(text.substr(open + 2, close - open - 2));
    if (!is_path(path)) {
      out += text.substr(0, open + 1);  // the second brace may open a placeholder
      text.remove_prefix(open + 1);
      continue;
    }
    out += text.substr(0, open);
    out += text_of(find_path(facts, path));
    text.remove_prefix(close + 2);
  }
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

Result<Invocation> build_invocation(AdapterType adapter, const bj::object& config,
                                    const InvocationFacts& facts) {
  const Config read{config};
  Invocation out{.argv = {}};
  switch (adapter) {
    case AdapterType::process: out.argv = process_argv(read); break;
    case AdapterType::claude_local: out.argv = claude_argv(read, facts); break;
    case AdapterType::codex_local: out.argv = codex_argv(read, facts); break;
  }
  BERTH_DO(check_argv(out.argv));
  out.stdin_text = prompt_of(adapter, read, facts);
  out.cwd = read.text("cwd");
  if (const std::int64_t timeout_ms = to_ms(read.number("timeoutSec", 0)); timeout_ms > 0) {
    out.timeout_ms = timeout_ms;
  }
  // At least a second: a program that is told to end must be able to.
  out.grace_ms = std::max<std::int64_t>(1000, to_ms(read.number("graceSec", 15)));
  return out;
}

}  // namespace berth::core
