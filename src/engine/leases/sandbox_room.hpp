#pragma once

#include "core/admission.hpp"
#include "core/rows/environment.hpp"
#include "engine/accounts/quotas.hpp"

#include <map>
#include <set>

// How much of this machine the sandboxes of one company may take together.
namespace berth::engine {

// Where a config asks for more than one sandbox may take: `unprocessable`, with the pointer of the
// field and its bound. What a config does not say is not judged, and what was saved before goes on
// until its config is edited.
Result<> expect_in_bounds(store::Session& session, const core::CompanyId& company,
                          core::DriverKind driver, const bj::object& config);

// How many warm sandboxes each of these environments of one company may have. Pools take at most
// half of the quota, so that runs always have the other half.
using PoolSizes = std::map<core::EnvironmentId, std::int64_t>;
PoolSizes fit_pools(const std::vector<core::Stored<core::Environment>>& environments,
                    const Quota& quota);

// What the sandboxes of a company take now: those that live, and those that its pools keep ready.
Result<core::SandboxShare> sandboxes_in_use(store::Session& session, const core::CompanyId& company,
                                            const Quota& quota);

// For a sandbox that is not a run's, and so does not wait: `quota_exceeded` where there is no room.
Result<> expect_sandbox_room(store::Session& session, const core::CompanyId& company,
                             const bj::object& config);

// The rooms of the companies whose runs wait, each looked at once. A run that finds a sandbox of
// its environment to reuse asks for nothing more.
class SandboxRooms {
 public:
  Result<> look(store::Session& session, const core::Run& run, core::RunCapacity& capacity);
  core::QueuedRun queued(const core::Run& run);
  // Environments of which no sandbox fits now.
  std::vector<core::EnvironmentId> without_room(const core::RunCapacity& capacity) const;

 private:
  struct Place {
    core::CompanyId company;
    core::SandboxShare share;
  };
  std::map<core::EnvironmentId, Place> places_;
  std::set<core::CompanyId> looked_;
  std::map<core::EnvironmentId, std::int64_t> idle_;
};

}  // namespace berth::engine
