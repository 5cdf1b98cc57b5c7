#pragma once

#include "base/owned.hpp"
#include "plugins/command.hpp"

#include <sys/types.h>

namespace berth::plugins {

// A running program of a plugin, and our ends of its standard streams.
struct Spawned {
  pid_t pid = 0;  // of the keeper, which is the program's parent
  Fd in;
  Fd out;
  Fd err;
  Fd report;  // the keeper's report about the box; empty without a box
};

// Starts through `berth-keeper plugin`. SIGTERM to the pid is passed on to the program. SIGHUP
// kills everything it started, and so does the end of this process. The caller must wait for the
// pid.
Result<Spawned> spawn_program(const WorkerCommand& command, const Launching& launching);

}  // namespace berth::plugins
