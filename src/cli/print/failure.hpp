#pragma once

#include "base/result.hpp"

#include <iosfwd>
#include <string>

namespace berth::cli {

// The exit codes. Part of the interface: scripts branch on them.
enum class ExitCode {
  ok = 0,
  failure = 1,
  usage = 2,
  not_found = 3,
  conflict = 4,
  not_allowed = 5,
  unreachable = 6
};

ExitCode exit_code_of(Errc code);
// "error: ...", "  code: ...", "  fix: ...", and a line for each invalid field.
std::string error_text(const Error& error, bool colour);
// The same shape that the HTTP API uses.
std::string error_json(const Error& error);

}  // namespace berth::cli
