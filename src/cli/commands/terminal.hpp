#pragma once

#include "cli/session.hpp"

#include <string>
#include <vector>

namespace berth::cli {

// Sits this program's terminal in front of a command in a place that a lease holds, until the
// command ends; without a command that is a shell. Standard input that is no terminal is passed as
// it is. The exit code of the command.
Result<int> sit_in_terminal(Session& session, const std::string& lease_id,
                            const std::vector<std::string>& command, const std::string& cwd = {});

// The same in front of the login of an agent's own program, claude or codex, in the sandbox of a
// plugin. It ends with this program.
Result<int> log_in(Session& session, const std::string& lease_id, const std::string& program);

// The same without a terminal: standard input goes to the command, which ends with this program.
Result<int> feed_command(Session& session, const std::string& lease_id,
                         const std::vector<std::string>& command, const std::string& cwd);

}  // namespace berth::cli
