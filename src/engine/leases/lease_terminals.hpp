#pragma once

#include "core/call.hpp"
#include "core/rows/run.hpp"
#include "drivers/driver.hpp"
#include "engine/services.hpp"

namespace berth::engine {

class LeaseLifecycle;

// A command at a terminal in a place that is held. Without argv it is a shell.
struct OpenTerminal {
  std::optional<std::string> id = {};  // the same one again finds the same terminal
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};  // absent: where commands of the place work
  core::TerminalSize size = {};
};

// A command in a place that is held, with its input from whoever opened it.
struct OpenStream {
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};
  // Whether it must be given its input while it runs, may be given it as a whole before, or has
  // none.
  enum class Input { live, whole_will_do, none } input = Input::whole_will_do;
  std::optional<std::int64_t> timeout_ms = {};  // absent: as long as a terminal may stay open
};

// Commands with somebody in front of them, in places that leases hold.
class LeaseTerminals {
 public:
  LeaseTerminals(Services& services, LeaseLifecycle& work) : services_(services), work_(work) {}

  // A terminal in the place of a lease that is active or retained; the activity says who opened it.
  // Starting the same id twice runs it once.
  Task<execution::LiveCommandPtr> open(core::Call call, core::LeaseId lease, OpenTerminal wanted);
  // The login of an agent's own program in the sandbox of a plugin. What it says is kept nowhere.
  Task<execution::LiveCommandPtr> log_in(core::Call call, core::LeaseId lease,
                                         execution::LoginCommand command);
  // Whoever opened it cancels it when they go.
  Task<execution::LiveCommandPtr> stream(core::Call call, core::LeaseId lease, OpenStream wanted);

 private:
  struct Place {
    drivers::Driver* driver;
    drivers::PlaceRef facts;
  };
  Task<Place> enter(const core::Call& call, const core::LeaseId& lease, std::string_view action,
                    bj::object details);
  Task<execution::LiveCommandPtr> open_duplex(const Place& held, const drivers::Command& command,
                                              OpenStream::Input input);

  Services& services_;
  LeaseLifecycle& work_;
};

}  // namespace berth::engine
