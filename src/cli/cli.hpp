#pragma once

#include "cli/config.hpp"
#include "cli/print/console.hpp"
#include "cli/sandbox_request.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::cli {

// Implements `berth serve`; passed in, because this folder knows only the client side.
using ServeCommand = std::function<int(Config)>;

// The whole command line of the program. Returns the exit code.
int run(int argc, char** argv, const ServeCommand& serve, const SandboxCommand& sandbox);
// The same with another console, for tests. `arguments` do not include the program's name.
int run(const std::vector<std::string>& arguments, Console& console, const ServeCommand& serve,
        const SandboxCommand& sandbox = {});

}  // namespace berth::cli
