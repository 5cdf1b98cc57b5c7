#pragma once

#include "keepers/command.hpp"
#include "places/place_ref.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace berth::places {

using keepers::Command;
using keepers::Ended;
using keepers::EndOfInput;
using keepers::Input;
using keepers::NoStdin;
using keepers::Outcome;
using keepers::OutputKind;
using keepers::OutputPiece;
using keepers::OutputTaker;
using keepers::SignalNumber;
using keepers::Started;
using keepers::StdinBytes;
using keepers::StdinPipe;
using keepers::Usage;

// Where the command works; paths are in the place itself.
struct Workspace {
  std::string cwd;
  std::optional<std::string> home = {};
  std::optional<std::string> path = {};     // PATH of a login there; absent: the default
  std::optional<std::string> scratch = {};  // removed with the lease
  std::optional<std::string> api_url = {};  // this server's URL as seen from there
};

// Commands in a place. All operations may be repeated, also after a server restart. Arguments
// passed by reference must live until the answer.
class Commands {
 public:
  virtual ~Commands() = default;

  // The command's working directory: `wanted`, which must exist, or one made for the lease.
  virtual Task<Workspace> realize(const PlaceRef& lease,
                                  const std::optional<std::string>& wanted) = 0;
  // Returns when the command runs. Repeating an exec id returns the same answer and runs nothing.
  virtual Task<Started> start(const PlaceRef& lease, const Command& command) = 0;
  // The command's output from an offset on, and how it ended. Works long after the end, until the
  // lease is released. A broken connection is reopened if that can help. exec_not_found if the
  // command was never started.
  virtual Task<Ended> follow(const PlaceRef& lease, const std::string& exec_id,
                             std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(const PlaceRef& lease, const std::string& exec_id, Input input) = 0;
  // Ends the command and everything it left behind; `follow` then returns. Succeeds if there is
  // nothing to end.
  virtual Task<> cancel(const PlaceRef& lease, const std::string& exec_id,
                        std::int64_t grace_ms) = 0;
  // What the lease holds ends by itself unless this is repeated in time.
  virtual Task<> renew(const PlaceRef& lease, std::int64_t deadline_ms) = 0;
  // The output of an ended command is no longer needed and may be deleted.
  virtual Task<> forget_output(const PlaceRef& lease, const std::string& exec_id) = 0;
};

}  // namespace berth::places
