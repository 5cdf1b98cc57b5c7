#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace bench {

// A command for `sh -c` that writes this many bytes through `cat`.
inline std::string output_script(std::uint64_t bytes) {
  return "head -c " + std::to_string(bytes) + " /dev/zero | cat";
}

// MB/s of that command's output to a reader that discards it.
inline double bare_pipe_mb_s(std::uint64_t bytes) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  std::string script = output_script(bytes);
  std::array<char*, 4> argv{const_cast<char*>("sh"), const_cast<char*>("-c"), script.data(),
                            nullptr};
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  if (::posix_spawn(&pid, "/bin/sh", &files, nullptr, argv.data(), environ) != 0) std::abort();
  ::close(ends[1]);
  std::vector<char> buffer(std::size_t{256} << 10);
  while (::read(ends[0], buffer.data(), buffer.size()) > 0) {
  }
  ::waitpid(pid, nullptr, 0);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  ::close(ends[0]);
  ::posix_spawn_file_actions_destroy(&files);
  return static_cast<double>(bytes) / took.count();
}

}  // namespace bench
