#pragma once

#include "base/json/json.hpp"
#include "cli/config.hpp"
#include "cli/print/console.hpp"
#include "keeper/sandbox/plan.hpp"

#include <functional>
#include <string>
#include <vector>

namespace berth::cli {

// One command in a sandbox that is created for it and destroyed with it.
struct SandboxRequest {
  bj::object config;  // of the provider `linux`
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> variables = {};
  std::vector<keeper::sandbox::Bind> binds = {};
  std::string cwd = {};  // empty: the sandbox's own
  bool passes_stdin = false;
  bool terminal = false;
  bool quiet = false;  // do not print remarks
};

// Implements `berth sandbox run`; passed in by the program. Returns the exit code.
using SandboxCommand = std::function<Result<int>(SandboxRequest, Console&, const Settings&)>;

}  // namespace berth::cli
