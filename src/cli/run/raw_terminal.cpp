#include "cli/run/raw_terminal.hpp"

#include "base/files.hpp"

#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

namespace berth::cli {
namespace {

constexpr std::array fatal_signals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

// A signal handler can reach only globals. Written before the handlers are set and never after.
int crash_fd = -1;         // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): see above
termios crash_settings{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): see above

// Only async-signal-safe calls. The handler is set for one signal, so raising it again ends the
// program as before.
void restore_and_die(int signal) {
  ::tcsetattr(crash_fd, TCSANOW, &crash_settings);
  ::raise(signal);
}

void guard_crashes(int fd, const termios& settings) {
  crash_fd = fd;
  crash_settings = settings;
  struct sigaction action{};
  action.sa_handler = restore_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : fatal_signals) ::sigaction(signal, &action, nullptr);
}

}  // namespace

Result<RawTerminal> RawTerminal::enter(int fd) {
  termios before{};
  if (::tcgetattr(fd, &before) != 0) return io_failure("tcgetattr", "the terminal", errno);
  guard_crashes(fd, before);
  termios raw = before;
  ::cfmakeraw(&raw);
  if (::tcsetattr(fd, TCSADRAIN, &raw) != 0) return io_failure("tcsetattr", "the terminal", errno);
  return RawTerminal{fd, before};
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), before_(other.before_) {}

RawTerminal::~RawTerminal() {
  if (fd_ >= 0) ::tcsetattr(fd_, TCSADRAIN, &before_);
}

core::TerminalSize terminal_size(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

}  // namespace berth::cli
