#pragma once

#include "keeper/protocol/client.hpp"
#include "sdk/call.hpp"
#include "sdk/values.hpp"

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace berth::fake {

struct HeldCommand {
  std::vector<std::string> argv;
  std::vector<std::string> environment;  // NAME=value, complete
  std::string cwd;
  std::optional<std::string> stdin_bytes = {};
  double timeout_ms = 0;            // 0: none
  std::string keepers_folder = {};  // empty: the command does not belong to a sandbox
};

// Commands, each under its own keeper. A keeper that is not renewed ends its tree, so that a killed
// worker leaves none behind for longer than half a minute.
class HeldCommands {
 public:
  // Waits for the end, and sends output as it arrives. Fails if the command cannot start.
  Result<sdk::Executed> run(const HeldCommand& command, sdk::Call& call);
  // Ends all running commands.
  void stop_all();

 private:
  Result<sdk::Executed> run_in(const std::string& folder, const HeldCommand& command,
                               sdk::Call& call);

  std::mutex lock_;
  std::set<std::string> folders_;  // of keepers that hold a command
};

// Ends the keepers whose state is in folders below this one.
Result<> stop_keepers(const std::string& keepers_folder);

}  // namespace berth::fake
