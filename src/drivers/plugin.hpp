#pragma once

#include "drivers/driver.hpp"

namespace berth::drivers {

// Environments whose driver is a plugin. Every verb, also that of giving back, is refused as long
// as no plugin runs: the refusal names the plugin that the config asks for. A probe reports it.
class Plugin final : public Driver {
 public:
  Task<ProbeReport> probe(const AcquireRequest& request) override;
  Task<Acquired> acquire(const AcquireRequest& request) override;
  Task<Workspace> realize(const LeaseFacts& lease,
                          const std::optional<std::string>& wanted) override;
  Task<Started> start(const LeaseFacts& lease, const Command& command) override;
  Task<Ended> follow(const LeaseFacts& lease, const std::string& exec_id, std::uint64_t offset,
                     OutputTaker& taker) override;
  Task<> send(const LeaseFacts& lease, const std::string& exec_id, Input input) override;
  Task<> cancel(const LeaseFacts& lease, const std::string& exec_id,
                std::int64_t grace_ms) override;
  Task<> renew(const LeaseFacts& lease, std::int64_t deadline_ms) override;
  Task<> release(const LeaseFacts& lease, core::LeaseEvent how) override;
  Task<> destroy(const LeaseFacts& lease) override;
};

}  // namespace berth::drivers
