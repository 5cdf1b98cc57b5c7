#pragma once

#include "base/secret.hpp"
#include "cli/config.hpp"

#include <iosfwd>
#include <string>

namespace berth::cli {

// The input and output of a command. A test gives it strings and pipes.
struct Console {
  std::ostream& out;
  std::ostream& err;
  int in = 0;
  // The files behind `out` and `err`, for output that is not our text; -1: there is none.
  int out_fd = -1;
  int err_fd = -1;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 80;
  Variables variables = {};
  uid_t user = 0;

  // The console of this process.
  static Console of_process();
};

// Opens /dev/null for each of standard input, output and error that is closed: reading ends at
// once, and output is discarded. Call it before anything else is opened, which would take one of
// their numbers.
Result<> fill_standard_streams();
// Asks a question on a terminal; anything but "y" or "yes" means no.
Result<> confirm(Console& console, const std::string& question, bool already_said_yes);
// Reads a secret value from a file ("-" is standard input), from standard input, or typed without
// echo; never from the command line, which other users can read. A single line loses its line end;
// a value of several lines, such as a private key, is unchanged.
Result<Secret> read_secret(Console& console, const std::string& file, const std::string& prompt);

}  // namespace berth::cli
