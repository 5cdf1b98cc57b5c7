#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

// A program of this machine, run for a hook: for providers whose sandboxes are here, and for those
// that drive somebody's command-line client.
namespace berth::sdk {

struct LocalCommand {
  std::vector<std::string> argv;                        // no shell; argv[0] is looked for in PATH
  std::map<std::string, std::string> environment = {};  // all of it
  std::string cwd = "/";
  std::optional<std::string> stdin_ = {};
  double timeout_ms = 0;  // 0: none
  std::chrono::milliseconds grace{250};
};

// Waits for the end, and sends output on its way. The command, and all that it started, is held by
// a process of its own that ends them with the command, at the time limit, and when the worker
// dies: nothing is left whatever happens. What cannot start is an error.
Result<Executed> run_local(const LocalCommand& command, Call& call);

// That process: the worker's own program, started with `--hold`.
bool is_holder(int argc, char** argv);
int hold_local();

}  // namespace berth::sdk
