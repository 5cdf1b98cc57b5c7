#include "cli/print/console.hpp"

#include "base/files.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

namespace berth::cli {
namespace {

constexpr std::size_t value_bytes_max = 1 << 20;
constexpr std::size_t line_bytes_max = 65536;

// Byte by byte, so that nothing after the line is taken from the next reader.
Result<std::string> read_line(int fd) {
  std::string line;
  char byte = 0;
  while (line.size() < line_bytes_max) {
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_failure("read", "the terminal", errno);
    if (got == 0 || byte == '\n') return line;
    line += byte;
  }
  return fail(Errc::io_failed,
              "the line is longer than " + std::to_string(line_bytes_max) + " bytes");
}

// The terminal does not echo while this lives.
class NoEcho {
 public:
  explicit NoEcho(int fd) : fd_(fd), changed_(::tcgetattr(fd, &before_) == 0) {
    if (!changed_) return;
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(fd_, TCSAFLUSH, &silent);
  }
  NoEcho(const NoEcho&) = delete;
  NoEcho& operator=(const NoEcho&) = delete;
  ~NoEcho() {
    if (changed_) ::tcsetattr(fd_, TCSAFLUSH, &before_);
  }

 private:
  int fd_;
  termios before_{};
  bool changed_;
};

Result<Secret> boxed(Result<std::string> text) {
  if (!text) return std::unexpected(std::move(text).error());
  std::string_view value = *text;
  if (value.ends_with('\n') && value.find('\n') == value.size() - 1) value.remove_suffix(1);
  if (value.ends_with('\r') && value.find('\n') == std::string_view::npos) value.remove_suffix(1);
  Secret out{value};
  ::explicit_bzero(text->data(), text->size());
  if (out.empty()) {
    return fail(Errc::bad_request, "the secret value is empty",
                "give it on standard input or with --value-file");
  }
  return out;
}

}  // namespace

Console Console::of_process() {
  Console console{
      .out = std::cout, .err = std::cerr, .out_fd = STDOUT_FILENO, .err_fd = STDERR_FILENO};
  console.in_is_terminal = ::isatty(STDIN_FILENO) == 1;
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.user = ::geteuid();
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    console.columns = size.ws_col;
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    console.variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return console;
}

Result<> fill_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The kernel returns the lowest free number, which is this one. The programs that we start
    // inherit it like the stream.
    if (::open("/dev/null", O_RDWR) != fd) return io_failure("open", "/dev/null", errno);
  }
  return {};
}

Result<> confirm(Console& console, const std::string& question, bool already_said_yes) {
  if (already_said_yes) return {};
  if (!console.in_is_terminal) {
    return fail(Errc::bad_request, question + " Standard input is not a terminal.",
                "add --yes to do it without asking");
  }
  console.err << question << " [y/N] " << std::flush;
  BERTH_TRY(const std::string answer, read_line(console.in));
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return fail(Errc::cancelled, "nothing was changed");
}

Result<Secret> read_secret(Console& console, const std::string& file, const std::string& prompt) {
  if (!file.empty() && file != "-") return boxed(read_file(file, value_bytes_max));
  if (!console.in_is_terminal || file == "-") {
    return boxed(read_fd(console.in, value_bytes_max, "standard input"));
  }
  console.err << prompt << ": " << std::flush;
  const NoEcho silent{console.in};
  Result<Secret> value = boxed(read_line(console.in));
  console.err << "\n";
  return value;
}

}  // namespace berth::cli
