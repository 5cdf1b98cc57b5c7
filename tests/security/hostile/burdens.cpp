#include "security/hostile/burdens.hpp"

#include "security/hostile/tools.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace berth::hostile {

namespace {

constexpr int daemons = 10;
constexpr unsigned life_seconds = 60;  // of a process that is never ended

void ignore_signals() {
  for (const int number : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGCHLD}) {
    ::signal(number, SIG_IGN);
  }
}

// Applies if the sandbox has no process limit: for the user in its namespace, and for the whole
// family together.
constexpr int family_max = 300;

int breed() {
  ignore_signals();
  ::alarm(life_seconds);
  rlimit few = {};
  ::getrlimit(RLIMIT_NPROC, &few);
  few.rlim_max = std::min<rlim_t>(few.rlim_max, family_max);
  few.rlim_cur = few.rlim_max;
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (::setrlimit(RLIMIT_NPROC, &few) != 0 || shared == MAP_FAILED) return 1;
  auto& born = *new (shared) std::atomic<int>{1};
  std::puts("breeding");
  std::fflush(stdout);
  for (;;) {
    if (born.fetch_add(1) >= family_max) {
      for (;;) ::pause();
    }
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(life_seconds);
      ::setsid();
    }
    if (child < 0) {
      born.fetch_sub(1);
      ::sched_yield();
    }
  }
}

int be_stubborn() {
  ignore_signals();
  ::alarm(life_seconds);
  for (int i = 0; i < daemons; ++i) {
    if (::fork() != 0) continue;
    ::setsid();
    if (::fork() != 0) ::_exit(0);
    ::alarm(life_seconds);
    for (;;) ::pause();
  }
  std::puts("stubborn");
  std::fflush(stdout);
  for (;;) ::pause();
}

int write_pieces(const std::string& piece, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::size_t size = bytes < piece.size() ? bytes : piece.size();
    const ssize_t written = ::write(STDOUT_FILENO, piece.data(), size);
    if (written <= 0) return 1;
    bytes -= static_cast<std::uint64_t>(written);
  }
  return 0;
}

std::string garbage() {
  // Clipboard, title, responses typed by the terminal, and split characters.
  std::string piece =
      "\x1b]52;c;aG9zdGlsZQ==\x07\x1b]0;hostile\x07\x1b[6n\x1b[c\x1bP+q\x1b\\\xf0\x9f";
  for (int byte = 0; byte < 256; ++byte) piece += static_cast<char>(byte);
  return piece;
}

}  // namespace

int burden(const std::vector<std::string_view>& arguments) {
  if (arguments.size() != 4) return 1;
  if (std::to_string(namespace_of("net")) == arguments[2]) {
    std::puts("not on the host");
    return 1;
  }
  const std::uint64_t bytes = std::strtoull(arguments[3].data(), nullptr, 10);
  if (arguments[1] == "breed") return breed();
  if (arguments[1] == "stubborn") return be_stubborn();
  if (arguments[1] == "stop") return ::kill(::getppid(), SIGSTOP) == 0 ? 0 : 1;
  if (arguments[1] == "kill") return ::kill(-1, SIGKILL) == 0 ? 0 : 1;
  if (arguments[1] == "flood") return write_pieces(std::string(65536, 'y'), bytes);
  if (arguments[1] == "drip") return write_pieces("z", bytes);
  if (arguments[1] == "garbage") return write_pieces(garbage(), bytes);
  return 1;
}

}  // namespace berth::hostile
