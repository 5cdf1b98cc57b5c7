#pragma once

#include "base/owned.hpp"
#include "plugins/command.hpp"

#include <sys/types.h>

namespace berth::plugins {

// A program of a plugin that runs, and our ends of its standard streams.
struct Spawned {
  pid_t pid = 0;  // of the keeper, which is the program's parent
  Fd in;
  Fd out;
  Fd err;
  Fd report;  // what the keeper says about the box; nothing where there is none
};

// Through `berth-keeper plugin`. SIGTERM to the pid is passed on to the program; SIGHUP kills all
// that it started, and so does the end of this process. Who calls this waits for the pid.
Result<Spawned> spawn_program(const WorkerCommand& command, const Launching& launching);

}  // namespace berth::plugins
