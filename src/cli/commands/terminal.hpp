#pragma once

#include "cli/context.hpp"

#include <string>
#include <vector>

namespace berth::cli {

// Connects this program's terminal to a command in a leased place, until the command ends; the
// default command is a shell. Standard input that is not a terminal is passed unchanged. Returns
// the command's exit code.
Result<int> sit_in_terminal(Context& context, const std::string& lease_id,
                            const std::vector<std::string>& command, const std::string& cwd = {});

// The same for the login of an agent's program, claude or codex, in a plugin sandbox. It ends with
// this program.
Result<int> log_in(Context& context, const std::string& lease_id, const std::string& program);

// A command without a terminal in a leased place.
struct StreamedCommand {
  std::string lease_id;
  std::vector<std::string> argv;
  std::string cwd = {};
  enum class Input { none, standard } input = Input::none;
  std::optional<std::int64_t> timeout_ms = {};
};

// The same without a terminal: every byte of its output arrives unchanged, and the command ends
// with this program.
Result<int> stream_command(Context& context, const StreamedCommand& wanted);

// The exit code for a command, from the `exec` of its last frame or from the exec route's response.
// Reports incomplete output.
int tell_end_of_exec(Context& context, const bj::value& exec);

}  // namespace berth::cli
