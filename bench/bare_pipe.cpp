// bare_pipe BYTES: MB/s of a command's output through a pipe to a reader that discards it.

#include "bare_pipe.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: bare_pipe BYTES\n", stderr);
    return 2;
  }
  std::printf("%.1f\n", bench::bare_pipe_mb_s(std::strtoull(argv[1], nullptr, 10)));
}
