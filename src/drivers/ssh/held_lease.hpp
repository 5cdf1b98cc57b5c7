#pragma once

#include "drivers/driver.hpp"

namespace berth::drivers::ssh {

// A lease on a host and whoever holds its commands there. The verbs are those of Driver.
class HeldLease {
 public:
  virtual ~HeldLease() = default;

  // Sees to it that commands can be started.
  virtual Task<> open() = 0;
  virtual Task<Started> start(const Command& command) = 0;
  virtual Task<Ended> follow(std::string exec_id, std::uint64_t offset, OutputTaker& taker) = 0;
  virtual Task<> send(std::string exec_id, Input input) = 0;
  virtual Task<> cancel(std::string exec_id, std::int64_t grace_ms) = 0;
  virtual Task<> renew(std::int64_t deadline_ms) = 0;
  // Lets go of the sessions; what runs goes on.
  virtual Task<> detach() = 0;
  // Ends everything and removes the folder of the lease.
  virtual Task<> remove() = 0;
};

}  // namespace berth::drivers::ssh
