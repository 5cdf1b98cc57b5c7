#pragma once

#include "base/result.hpp"
#include "core/rows/run.hpp"

#include <termios.h>

namespace berth::cli {

// A terminal whose keys go to the run as they are typed, while this lives. It is given back as it
// was when this ends, and also when the program crashes: a shell with a raw terminal is of no use.
class RawTerminal {
 public:
  static Result<RawTerminal> enter(int fd);
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

 private:
  RawTerminal(int fd, const termios& before) : fd_(fd), before_(before) {}

  int fd_;  // -1: moved from
  termios before_;
};

// What the terminal shows now; 80 by 24 when it does not say.
core::TerminalSize terminal_size(int fd);

}  // namespace berth::cli
