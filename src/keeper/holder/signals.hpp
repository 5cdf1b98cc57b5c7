#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

namespace berth::keeper {

// A terminal that is gone, a reader that is gone and a file that is too long are told to the keeper
// by the call that failed.
inline constexpr std::array ignored_signals{SIGHUP, SIGPIPE, SIGXFSZ};

// Whatever was ignored by the process that started this one, once, so that no command has to ask.
// The C library does not let go of two signals that it uses itself, so the kernel is asked.
inline void set_default_signals() {
  constexpr std::array<std::uint64_t, 4> defaults{};  // handler, flags, restorer, mask
  for (int number = 1; number < NSIG; ++number) {
    ::syscall(SYS_rt_sigaction, number, defaults.data(), nullptr, sizeof(std::uint64_t));
  }
}

}  // namespace berth::keeper
