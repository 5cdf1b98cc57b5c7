#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

namespace berth::keeper {

// The failed call itself reports a hung-up terminal, a closed reader and a file that is too long.
inline constexpr std::array ignored_signals{SIGHUP, SIGPIPE, SIGXFSZ};

// Resets once whatever the parent process ignored, so that no command has to. The C library refuses
// to change two signals that it uses itself, so this is a direct system call.
inline void set_default_signals() {
  constexpr std::array<std::uint64_t, 4> defaults{};  // handler, flags, restorer, mask
  for (int number = 1; number < NSIG; ++number) {
    ::syscall(SYS_rt_sigaction, number, defaults.data(), nullptr, sizeof(std::uint64_t));
  }
}

}  // namespace berth::keeper
