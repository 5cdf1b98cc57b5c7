#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace berth::snapshots {

// A program with its own process group, whose standard streams we hold. It is killed with its group
// unless it has been waited for.
class ChildProcess {
 public:
  // The first word is the absolute path of the program. The environment is exactly the given one.
  static Result<ChildProcess> start(const std::vector<std::string>& words,
                                    const std::vector<std::string>& environment);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t id() const { return id_; }
  // Readable when the process has ended.
  int ended() const { return ended_.get(); }
  void kill_group() const;
  // Collects the process, which has ended or was killed, and returns the status of waitpid.
  int collect();

  Fd input;   // a socket: a write to a child that has ended is an error, never a signal
  Fd output;  // its standard output
  Fd errors;  // its standard error

 private:
  ChildProcess(pid_t id, Fd ended) : id_(id), ended_(std::move(ended)) {}

  pid_t id_ = -1;
  Fd ended_;
};

}  // namespace berth::snapshots
