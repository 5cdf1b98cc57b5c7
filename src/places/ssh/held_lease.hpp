#pragma once

#include "places/place.hpp"

namespace berth::places::ssh {

// A lease on a host, and what holds its commands there. The operations are those of Commands.
class HeldLease {
 public:
  virtual ~HeldLease() = default;

  // Ensures that commands can be started.
  virtual Task<> open() = 0;
  virtual Task<Started> start(const Command& command) = 0;
  virtual Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(std::string exec_id, Input input) = 0;
  virtual Task<> cancel(std::string exec_id, std::int64_t grace_ms) = 0;
  virtual Task<> renew(std::int64_t deadline_ms) = 0;
  // Closes the sessions; commands keep running.
  virtual Task<> detach() = 0;
  // Ends everything and removes the lease's folder.
  virtual Task<> remove() = 0;
};

}  // namespace berth::places::ssh
