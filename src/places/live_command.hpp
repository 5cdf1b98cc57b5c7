#pragma once

#include "core/rows/login.hpp"
#include "keepers/command.hpp"

#include <memory>

namespace berth::execution {

using core::LoginCommand;

// Whether a running command may receive input where that needs a plugin's duplex stream.
enum class DuplexBridge { off, on };

// An interactive command. Single-threaded.
class LiveCommand {
 public:
  virtual ~LiveCommand() = default;

  virtual const std::string& id() const = 0;
  // Same as Execution::follow(). If the output is not kept, the offset must be 0 and there is only
  // one reader.
  virtual Task<Ended> follow(std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(Input input) = 0;
  // Ends the command; follow() then returns.
  virtual Task<> cancel() = 0;
};

using LiveCommandPtr = std::unique_ptr<LiveCommand>;

}  // namespace berth::execution
