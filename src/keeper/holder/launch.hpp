#pragma once

#include "base/owned.hpp"
#include "base/result.hpp"
#include "keeper/protocol/messages.hpp"

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace berth::keeper {

// Where and why a command could not be started.
struct StartFailure {
  Step step = Step::none;
  int error_number = 0;
  bool command_exists = false;  // though it could not be executed
};

// A command made ready to be executed: what is left to do allocates nothing.

// The child's ends of what it reads and writes. Without the first it has nothing to read.
struct ChildEnds {
  Fd in;
  Fd out;
  Fd err;
};

class Launch {
 public:
  // The exec must outlive the launch, which points into its strings.
  Launch(const Exec& exec, rlimit open_files);

  // Makes the child of the calling process, whose stdin must be nothing. Returns when the child
  // runs the command or has failed to. The child dies with the calling process.
  pid_t run(const ChildEnds& ends, StartFailure& failure) const;

 private:
  // Runs in the child, in the memory of the parent; returns only when a step has failed.
  StartFailure enter(const ChildEnds& ends, pid_t parent) const;

  const Exec& exec_;
  rlimit open_files_;
  std::vector<std::string> candidates_;
  std::string cgroup_procs_;
  std::vector<char*> argv_;
  std::vector<char*> environment_;
};

// The failure in words, with what was looked for where.
Error explain(const Exec& exec, const StartFailure& failure);
// Whether there is such a command where the caller looks.
bool exists_somewhere(const Exec& exec);
// Where a command without a slash is looked for.
std::string path_of(const Exec& exec);

}  // namespace berth::keeper
