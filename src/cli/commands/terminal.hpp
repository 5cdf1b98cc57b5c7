#pragma once

#include "cli/context.hpp"

#include <string>
#include <vector>

namespace berth::cli {

// Sits this program's terminal in front of a command in a place that a lease holds, until the
// command ends; without a command that is a shell. Standard input that is no terminal is passed as
// it is. The exit code of the command.
Result<int> sit_in_terminal(Context& context, const std::string& lease_id,
                            const std::vector<std::string>& command, const std::string& cwd = {});

// The same in front of the login of an agent's own program, claude or codex, in the sandbox of a
// plugin. It ends with this program.
Result<int> log_in(Context& context, const std::string& lease_id, const std::string& program);

// A command without a terminal in a place that a lease holds.
struct StreamedCommand {
  std::string lease_id;
  std::vector<std::string> argv;
  std::string cwd = {};
  enum class Input { none, standard } input = Input::none;
  std::optional<std::int64_t> timeout_ms = {};
};

// The same without a terminal: every byte of its output comes as it is, and the command ends with
// this program.
Result<int> stream_command(Context& context, const StreamedCommand& wanted);

// How a command ends this program, by the `exec` of its last frame or the answer of the exec route.
// Says where its output is not whole.
int tell_end_of_exec(Context& context, const bj::value& exec);

}  // namespace berth::cli
