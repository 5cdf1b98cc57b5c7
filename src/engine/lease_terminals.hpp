#pragma once

#include "core/call.hpp"
#include "core/run.hpp"
#include "drivers/driver.hpp"
#include "engine/means.hpp"

namespace berth::engine {

class LeaseWork;

// A command at a terminal in a place that is held. Without argv it is a shell.
struct OpenTerminal {
  std::optional<std::string> id = {};  // the same one again finds the same terminal
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};  // absent: where commands of the place work
  core::TerminalSize size = {};
};

// Terminals in places that leases hold.
class LeaseTerminals {
 public:
  LeaseTerminals(Means& means, LeaseWork& work) : means_(means), work_(work) {}

  struct Terminal {
    drivers::Driver* driver;
    drivers::LeaseFacts facts;
    std::string exec_id;
  };

  // In the place of a lease that is active or retained; the activity says who opened it. Starting
  // the same id twice runs it once.
  Task<Terminal> open(core::Call call, core::LeaseId lease, OpenTerminal wanted);

 private:
  Means& means_;
  LeaseWork& work_;
};

}  // namespace berth::engine
