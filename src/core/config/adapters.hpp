#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <map>

// How each adapter starts its program. agent_output.hpp reads what the program prints.
namespace berth::core {

// What an adapter builds from an agent's config: a program, its arguments and its input.
struct Invocation {
  std::vector<std::string> argv;  // argv[0] is looked up in the PATH of the place where it runs
  std::vector<std::string> shown_argv = {};  // as shown in the run's row: without long texts
  std::string stdin_text = {};
  std::string prompt = {};  // the part of stdin that asks for this turn
  // Variables set for the program unless a configured one has the same name.
  std::map<std::string, std::string> environment = {};
  std::optional<std::string> cwd = {};
  std::optional<std::int64_t> timeout_ms = {};  // absent: none
  std::int64_t grace_ms = 15'000;

  friend bool operator==(const Invocation&, const Invocation&) = default;
};

// Facts about a program's place that its command line depends on.
struct InvocationPlace {
  bool is_sandbox = false;  // the program is isolated by Berth or by a provider
  bool is_root = false;     // the program runs as uid 0

  friend bool operator==(const InvocationPlace&, const InvocationPlace&) = default;
};

// What a run adds to its agent's config.
struct InvocationFacts {
  bj::object prompt_facts = {};            // {"agent": {"id", "name"}, "run": {"id"}, ...}
  std::optional<std::string> prompt = {};  // replaces the template
  // From an earlier run of the same agent. An invalid session id is ignored.
  std::optional<std::string> resume_session = {};
  InvocationPlace place = {};
  // The content of the file that `instructionsFilePath` names, as read by the server.
  std::optional<std::string> instructions_file = {};
};

inline constexpr std::size_t argument_bytes_max = 128UL * 1024 - 1;  // per argument, on Linux
inline constexpr std::size_t instructions_bytes_max = 60UL * 1024;   // for a field or a file
inline constexpr std::size_t argv_bytes_max = 1024UL * 1024;
inline constexpr std::size_t prompt_bytes_max = 1024UL * 1024;

// The prompt goes to stdin, where neither its length nor its text can break the command. The config
// comes from normalize_adapter_config; any remaining mistake is `unprocessable`.
Result<Invocation> build_invocation(AdapterType adapter, const bj::object& config,
                                    const InvocationFacts& facts);

// Whether the program would have anything to read. `unprocessable` for an empty prompt, because
// neither program starts with one.
Result<> check_prompt(AdapterType adapter, const bj::object& config, const InvocationFacts& facts);

// Fills {{agent.id}} from facts {"agent": {"id": ...}}; a missing fact becomes empty. Filled text
// is not expanded again, and braces that name nothing remain unchanged. Returns nothing when the
// result is longer than a prompt may be: a short template can repeat a long text many times.
std::optional<std::string> render_template(std::string_view text, const bj::object& facts);

// Whether a command can be started at all: it has a program, no NUL, and is within the Linux
// limits.
Result<> check_argv(const std::vector<std::string>& argv);

}  // namespace berth::core
