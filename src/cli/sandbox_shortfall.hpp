#pragma once

#include "base/json/json.hpp"
#include "cli/config.hpp"

#include <string>
#include <vector>

// What a created sandbox lacks, by the isolation that its provider reports.
namespace berth::cli {

// Fails if a limit from the sandbox's config is not in force, unless the config sets a lower
// minimum isolation.
Result<> expect_limits_in_force(const bj::object& config, const bj::object& isolation);
// A line for each remedy: what is missing, why, and how to fix it. What the config itself removes
// is fixed by the flag that caused it.
std::vector<std::string> shortfalls_of(const bj::object& config, const bj::object& isolation);
// A sandbox error for a single command without a server: no remedy twice, and none that concerns a
// server.
Error for_one_command(Error error);

// Whether this user has seen these lines before on this machine; from now on they count as seen.
// Stored in $XDG_STATE_HOME/berth/told, else below ~/.local/state; if that is not writable, every
// time is the first.
bool were_told(const std::vector<std::string>& lines, const Variables& variables);

}  // namespace berth::cli
