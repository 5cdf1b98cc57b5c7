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
  bool command_exists = false;  // even if it could not be executed
};

// The child's ends of its standard streams. Without `in` it reads nothing.
struct ChildEnds {
  Fd in;
  Fd out;
  Fd err;
};

// A command that is ready to be executed: the remaining steps allocate nothing.
class Launch {
 public:
  // `exec` must outlive the Launch, which points into its strings.
  Launch(const Exec& exec, rlimit open_files);

  // Makes a child of the calling process, whose stdin must be /dev/null. Returns when the child
  // runs the command or has failed to. The child is killed when the calling process ends.
  pid_t run(const ChildEnds& ends, StartFailure& failure) const;

 private:
  // Runs in the child, in the parent's memory. Returns only when a step has failed.
  StartFailure enter(const ChildEnds& ends, pid_t parent) const;

  const Exec& exec_;
  rlimit open_files_;
  std::vector<std::string> candidates_;
  std::string cgroup_procs_;
  std::vector<char*> argv_;
  std::vector<char*> environment_;
};

// Describes the failure, and what was looked for where.
Error explain(const Exec& exec, const StartFailure& failure);
// Whether the command exists where the caller looks.
bool exists_somewhere(const Exec& exec);
// The search path for a command without a slash.
std::string path_of(const Exec& exec);

}  // namespace berth::keeper
