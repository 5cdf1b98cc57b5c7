#pragma once

#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Runs a local program for a hook: for providers whose sandboxes are on this machine, and for those
// that drive a third-party command-line client.
namespace berth::sdk {

struct LocalCommand {
  std::vector<std::string> argv;                        // no shell; argv[0] is searched in PATH
  std::map<std::string, std::string> environment = {};  // complete
  std::string cwd = "/";
  std::optional<std::string> stdin_ = {};
  double timeout_ms = 0;  // 0: none
  std::chrono::milliseconds grace{250};
};

// Waits for the end, and sends output as it arrives. A separate process holds the command and all
// that it started. It ends them with the command, at the time limit, and when the worker dies, so
// nothing is left behind. Fails if the command cannot start.
Result<Executed> run_local(const LocalCommand& command, Call& call);

// Whether this process is that holder: the worker's own program, started with `--hold`.
bool is_holder(int argc, char** argv);
int hold_local();

}  // namespace berth::sdk
