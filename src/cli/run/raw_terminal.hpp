#pragma once

#include "base/result.hpp"
#include "core/rows/run.hpp"

#include <termios.h>

namespace berth::cli {

// Sends a terminal's keys to the run as they are typed, while this lives. The terminal is restored
// when this ends, and also when the program crashes: a shell cannot be used on a raw terminal.
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

// The terminal's current size; 80 by 24 when it does not report one.
core::TerminalSize terminal_size(int fd);

}  // namespace berth::cli
