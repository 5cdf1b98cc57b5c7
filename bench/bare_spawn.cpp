// bare_spawn COUNT PROGRAM ARGUMENT...: the time of COUNT posix_spawns of a program, including the
// wait. Prints the median in microseconds.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

double spawn_us(char** argv, const posix_spawn_file_actions_t& files) {
  const auto start = std::chrono::steady_clock::now();
  pid_t pid = 0;
  int status = 0;
  const bool ran = ::posix_spawnp(&pid, argv[0], &files, nullptr, argv, environ) == 0 &&
                   ::waitpid(pid, &status, 0) == pid && status == 0;
  if (!ran) {
    std::fprintf(stderr, "bare_spawn: %s did not succeed\n", argv[0]);
    std::exit(1);
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bare_spawn COUNT PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  const auto count = std::max<std::size_t>(1, std::strtoul(argv[1], nullptr, 10));
  // Its output would be mistaken for the number.
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<double> times;
  for (std::size_t i = 0; i < count; ++i) times.push_back(spawn_us(argv + 2, files));
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(count / 2));
  std::printf("%.1f\n", times[count / 2]);
}
