#pragma once

#include <sys/resource.h>

#include <csignal>

namespace berth::tests {

// While it lives, no byte can be written to any file of this process, like a full disk, also for
// root. Check the results after it is destroyed, because the test's output may be a file too.
class FullDisk {
 public:
  FullDisk() : on_excess_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, on_excess_);
  }

 private:
  void (*on_excess_)(int);
  rlimit before_{};
};

}  // namespace berth::tests
