#pragma once

#include "base/json/json.hpp"

#include <optional>

// How a run that is over ends the command that started it.
namespace berth::cli {

// Exit codes of `berth run` that are not the command's own; the usual ones of env(1), timeout(1)
// and shells.
inline constexpr int exit_timed_out = 124;
inline constexpr int exit_not_run = 125;
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;
inline constexpr int exit_cancelled = 130;
inline constexpr int exit_signal_base = 128;

// The exit code of a run that is over: the command's own; 128+n when signal n ended it; 124 timed
// out; 130 cancelled; 127 and 126 for a command that is not there or not executable; 125 when it
// could not be carried out, or when it succeeded and a full disk refused to keep what it said: who
// reads its output must not go on without it.
int exit_code_of_run(const bj::value& run);
// Of a command that was not carried out for this reason: 127, 126 or 125.
int exit_code_of_cause(Errc cause);
// What to tell a person beside the exit code: nothing when the command simply ended.
std::optional<Error> error_of_run(const bj::value& run);
// That not all of its output was kept, however it ended.
std::optional<std::string> remark_of_run(const bj::value& run);

// The same of a command in a place that is held, by the `exec` of its last frame or the answer of
// the exec route. The first is the command's own, whatever became of its output.
int exit_code_of_command(const bj::value& exec);
int exit_code_of_exec(const bj::value& exec);
std::optional<std::string> remark_of_exec(const bj::value& exec);
// In the words of both, and of whoever has held the command himself.
std::optional<std::string> remark_of_output(std::int64_t bytes_lost, std::int64_t bytes_over_limit);

}  // namespace berth::cli
