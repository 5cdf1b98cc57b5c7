#pragma once

#include "base/json/json.hpp"
#include "cli/config.hpp"

#include <string>
#include <vector>

// What a sandbox that was made lacks, by the isolation that its provider tells of it.
namespace berth::cli {

// Fails where a limit that the config of the sandbox names is not in force, unless the config says
// how little isolation will do.
Result<> expect_limits_in_force(const bj::object& config, const bj::object& isolation);
// A line for each remedy: what is missing, why, and what would mend that. What the config itself
// takes away is mended by the flag that says so.
std::vector<std::string> shortfalls_of(const bj::object& config, const bj::object& isolation);
// An error of a sandbox, for one who runs a single command without a server: no remedy twice, and
// none that is for a server.
Error for_one_command(Error error);

// Whether a person was told these lines before, on this machine and by this user; from now on they
// were. Kept in $XDG_STATE_HOME/berth/told, else below ~/.local/state; where that cannot be
// written, every time is the first.
bool were_told(const std::vector<std::string>& lines, const Variables& variables);

}  // namespace berth::cli
