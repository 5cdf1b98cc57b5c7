#pragma once

#include "base/json/json.hpp"
#include "core/enums.hpp"

#include <map>

// How each adapter starts its program. What the program then prints is read by agent_output.hpp.
namespace berth::core {

// What an adapter makes of an agent's config: a program, its arguments and what it reads.
struct Invocation {
  std::vector<std::string> argv;  // argv[0] is looked for in the PATH of the place where it runs
  std::vector<std::string> shown_argv = {};  // as the run's row shows it: without long texts
  std::string stdin_text = {};
  std::string prompt = {};  // the part of stdin that asks for this turn
  // Variables that the program is given unless a configured one has the same name.
  std::map<std::string, std::string> environment = {};
  std::optional<std::string> cwd = {};
  std::optional<std::int64_t> timeout_ms = {};  // absent: none
  std::int64_t grace_ms = 15'000;

  friend bool operator==(const Invocation&, const Invocation&) = default;
};

// The place of a program, as far as its command line depends on it.
struct InvocationPlace {
  bool is_sandbox = false;  // Berth's walls, or those of a provider, are around the program
  bool is_root = false;     // the program runs as uid 0

  friend bool operator==(const InvocationPlace&, const InvocationPlace&) = default;
};

// What a run adds to the config of its agent.
struct InvocationFacts {
  bj::object prompt_facts = {};            // {"agent": {"id", "name"}, "run": {"id"}, ...}
  std::optional<std::string> prompt = {};  // in place of the template
  // Of an earlier run of the same agent. One that is no session id is left out.
  std::optional<std::string> resume_session = {};
  InvocationPlace place = {};
  // The text of the file that `instructionsFilePath` names, which the server has read.
  std::optional<std::string> instructions_file = {};
};

inline constexpr std::size_t argument_bytes_max = 128UL * 1024 - 1;  // of Linux, for one argument
inline constexpr std::size_t instructions_bytes_max = 60UL * 1024;   // of a field or of a file
inline constexpr std::size_t argv_bytes_max = 1024UL * 1024;
inline constexpr std::size_t prompt_bytes_max = 1024UL * 1024;

// The prompt goes to stdin, where neither its length nor its text can break the command. The
// config is one that normalize_adapter_config took; what is wrong all the same is `unprocessable`.
Result<Invocation> build_invocation(AdapterType adapter, const bj::object& config,
                                    const InvocationFacts& facts);

// Whether there would be anything to read for the program. `unprocessable` for an empty prompt,
// with which neither program starts.
Result<> check_prompt(AdapterType adapter, const bj::object& config, const InvocationFacts& facts);

// Fills {{agent.id}} from facts {"agent": {"id": ...}}; what is not there becomes empty. Filled
// text is not looked at again, and braces that name nothing stay as they are. Nothing where that
// is longer than a prompt may be: a short template can name a long text very often.
std::optional<std::string> render_template(std::string_view text, const bj::object& facts);

// Whether a command fits into a process at all: a program, no NUL, no more than Linux takes.
Result<> check_argv(const std::vector<std::string>& argv);

}  // namespace berth::core
