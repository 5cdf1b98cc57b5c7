#pragma once

#include "base/json/json.hpp"

#include <optional>

// How a finished run ends the command that started it.
namespace berth::cli {

// Exit codes of `berth run` that are not the command's own; as in env(1), timeout(1) and shells.
inline constexpr int exit_timed_out = 124;
inline constexpr int exit_not_run = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_cancelled = 130;
inline constexpr int exit_signal_base = 128;

// The exit code of a finished run: the command's own; 128+n when signal n ended it; 124 timed out;
// 130 cancelled; 127 and 126 for a command that is missing or not executable; 125 when it could not
// be carried out. Also 125 when it succeeded but a full disk lost output: a script must not
// continue without it.
int exit_code_of_run(const bj::value& run);
// For a command that was not carried out for this reason: 127, 126 or 125.
int exit_code_of_cause(Errc cause);
// The error to show beside the exit code: nothing when the command simply ended.
std::optional<Error> error_of_run(const bj::value& run);
// Reports that some of its output was not kept, however it ended.
std::optional<std::string> remark_of_run(const bj::value& run);

// The same for a command in a leased place, from the `exec` of its last frame or from the exec
// route's response. The exit code is the command's own, even if output was lost.
int exit_code_of_command(const bj::value& exec);
int exit_code_of_exec(const bj::value& exec);
std::optional<std::string> remark_of_exec(const bj::value& exec);
// Shared wording for run, exec and `berth sandbox run`.
std::optional<std::string> remark_of_output(std::int64_t bytes_lost, std::int64_t bytes_over_limit);

}  // namespace berth::cli
