#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"
#include "places/provider.hpp"

namespace berth::providers {

// A provider for probes and tests: does no I/O, and everything except the ids depends only on its
// input. It cannot execute commands.
class Fake final : public Provider {
 public:
  Fake(Random& random, const Clock& clock) : random_(random), clock_(clock) {}

  std::string_view key() const override { return "fake"; }
  Task<Verdict> validate(bj::object config) override;
  Task<Verdict> probe(bj::object config) override;
  Task<ProviderLease> acquire(AcquireLease request) override;
  Task<std::optional<ProviderLease>> resume(bj::object config,
                                            std::string provider_lease_id) override;
  Task<> release(bj::object config, SandboxName name, LeaseEnd how) override;
  Task<> destroy(bj::object config, SandboxName name) override;
  bool matches(const bj::object& config, const ReusableLease& lease) const override;
  std::optional<bj::object> config_from(const bj::object& lease_metadata) const override;

 private:
  Random& random_;
  const Clock& clock_;
};

}  // namespace berth::providers
