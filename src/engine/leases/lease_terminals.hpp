#pragma once

#include "core/call.hpp"
#include "core/rows/run.hpp"
#include "engine/services.hpp"
#include "places/place.hpp"

namespace berth::engine {

class LeaseLifecycle;

// A command at a terminal in a held place. Without argv it is a shell.
struct OpenTerminal {
  std::optional<std::string> id = {};  // the same id again finds the same terminal
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};  // absent: the place's working directory
  core::TerminalSize size = {};
};

// A command in a held place, with input from the caller that opened it.
struct OpenStream {
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = {};
  // Whether it needs its input while it runs, accepts all of it beforehand, or has none.
  enum class Input { live, whole_will_do, none } input = Input::whole_will_do;
  std::optional<std::int64_t> timeout_ms = {};  // absent: as long as a terminal may remain open
};

// Interactive commands in leased places.
class LeaseTerminals {
 public:
  LeaseTerminals(Services& services, LeaseLifecycle& work) : services_(services), work_(work) {}

  // Opens a terminal in the place of an active or retained lease; the activity records the caller.
  // Starting the same id twice runs it once.
  Task<places::LiveCommandPtr> open(core::Call call, core::LeaseId lease, OpenTerminal wanted);
  // The login of an agent's own program in a plugin's sandbox. Its output is not stored.
  Task<places::LiveCommandPtr> log_in(core::Call call, core::LeaseId lease,
                                      places::LoginCommand command);
  // The caller that opened it cancels it when it disconnects.
  Task<places::LiveCommandPtr> stream(core::Call call, core::LeaseId lease, OpenStream wanted);

 private:
  struct Place {
    places::Place& place;
    places::PlaceRef facts;
  };
  Task<Place> enter(const core::Call& call, const core::LeaseId& lease, std::string_view action,
                    bj::object details);
  Task<places::LiveCommandPtr> open_duplex(const Place& held, const places::Command& command,
                                           OpenStream::Input input);

  Services& services_;
  LeaseLifecycle& work_;
};

}  // namespace berth::engine
