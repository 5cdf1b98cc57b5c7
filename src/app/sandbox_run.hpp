#pragma once

#include "cli/sandbox_request.hpp"

namespace berth::app {

// Creates a sandbox, runs one command in it with this process's standard streams, and removes it.
// The exit code is the command's, or one of `berth run`. No server is involved: the keeper ends
// what it holds when this process is killed.
Result<int> run_sandbox(cli::SandboxRequest request, cli::Console& console,
                        const cli::Settings& settings);

}  // namespace berth::app
