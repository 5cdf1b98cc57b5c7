#pragma once

#include "core/rows/login.hpp"
#include "execution/execution.hpp"

#include <memory>

namespace berth::execution {

using core::LoginCommand;

// Whether commands may be given their input while they run where that takes a stream of a plugin.
enum class DuplexBridge { off, on };

// A command with somebody in front of it. One thread.
class LiveCommand {
 public:
  virtual ~LiveCommand() = default;

  virtual const std::string& id() const = 0;
  // As Execution::follow(). Where nothing is kept of what the command says there is no offset but
  // 0, and one reader.
  virtual Task<Ended> follow(std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(Input input) = 0;
  // Ends the command; follow() then returns.
  virtual Task<> cancel() = 0;
};

using LiveCommandPtr = std::unique_ptr<LiveCommand>;

}  // namespace berth::execution
