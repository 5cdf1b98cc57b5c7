#pragma once

#include "cli/config.hpp"

namespace berth::app {

// Runs the server until SIGTERM or SIGINT. The first line on standard output is "listening on URL".
// Returns the exit code: 0 after a clean end, 1 when it could not start, with the reason and the
// remedy on standard error.
int serve(cli::Config config);

}  // namespace berth::app
