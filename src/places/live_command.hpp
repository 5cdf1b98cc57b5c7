#pragma once

#include "core/enums.hpp"
#include "core/rows/login.hpp"
#include "core/rows/template.hpp"
#include "places/commands.hpp"

#include <memory>

namespace berth::places {

using core::LoginCommand;

// Whether a running command may receive input where that needs a plugin's duplex stream.
enum class DuplexBridge { off, on };

// An interactive command. Single-threaded.
class LiveCommand {
 public:
  virtual ~LiveCommand() = default;

  virtual const std::string& id() const = 0;
  // Same as Commands::follow(). If the output is not kept, the offset must be 0 and there is only
  // one reader.
  virtual Task<Ended> follow(std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(Input input) = 0;
  // Ends the command; follow() then returns.
  virtual Task<> cancel() = 0;
};

using LiveCommandPtr = std::unique_ptr<LiveCommand>;

// The provider's own access to a place that is being prepared. Never stored.
struct SetupAccess {
  core::SetupConnection type = core::SetupConnection::unknown;
  std::optional<std::string> command = {};
  std::optional<std::string> token = {};
  std::optional<Time> expires_at = {};
};

// Interactive access of a provider's own. A place without it has terminals and commands that read
// input while they run, like any command.
class Logins {
 public:
  virtual ~Logins() = default;

  // How a person enters a place that is being prepared.
  virtual Task<SetupAccess> setup_access(const PlaceRef& lease) = 0;
  // An interactive login for an agent's own program in the place.
  virtual Task<LiveCommandPtr> open_login(const PlaceRef& lease, LoginCommand command) = 0;
  // A command that gets input while it runs. execution_unsupported if there is no way.
  virtual Task<LiveCommandPtr> open_stream(const PlaceRef& lease, const Command& command,
                                           DuplexBridge bridge) = 0;
};

}  // namespace berth::places
