#pragma once

#include "base/json/json.hpp"
#include "cli/config.hpp"
#include "cli/print/console.hpp"
#include "keeper/sandbox/plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::cli {

// One command in a sandbox that is made for it and goes with it.
struct SandboxRequest {
  bj::object config;  // of the provider `linux`
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::vector<keeper::sandbox::Bind> binds = {};
  std::string cwd = {};  // empty: the sandbox's own
  bool passes_stdin = false;
  bool terminal = false;
  bool quiet = false;  // no remarks of ours
};

// What `berth sandbox run` does, given by whoever can. The answer is the exit code.
using SandboxCommand = std::function<Result<int>(SandboxRequest, Console&, const Settings&)>;

}  // namespace berth::cli
