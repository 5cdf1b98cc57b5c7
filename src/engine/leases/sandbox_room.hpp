#pragma once

#include "core/admission.hpp"
#include "core/rows/environment.hpp"
#include "engine/accounts/quotas.hpp"

#include <map>
#include <set>

// How much of this machine a company's sandboxes may use together.
namespace berth::engine {

// `unprocessable`, with the field's pointer and its bound, if a config requests more than one
// sandbox may use. Absent fields are not checked, and saved configs remain valid until edited.
Result<> expect_in_bounds(store::Session& session, const core::CompanyId& company,
                          core::DriverKind driver, const bj::object& config);

// How many warm sandboxes each of these environments of one company may have. Pools take at most
// half of the quota, so that runs always have the other half.
using PoolSizes = std::map<core::EnvironmentId, std::int64_t>;
PoolSizes fit_pools(const std::vector<core::Stored<core::Environment>>& environments,
                    const Quota& quota);

// What a company's sandboxes use now: live ones, and those that its pools keep ready.
Result<core::SandboxShare> sandboxes_in_use(store::Session& session, const core::CompanyId& company,
                                            const Quota& quota);

// For a sandbox outside a run, which does not queue: `quota_exceeded` if there is no room.
Result<> expect_sandbox_room(store::Session& session, const core::CompanyId& company,
                             const bj::object& config);

// The free capacity of companies with queued runs, each computed once. A run that can reuse a
// sandbox of its environment needs nothing more.
class SandboxRooms {
 public:
  Result<> look(store::Session& session, const core::Run& run, core::RunCapacity& capacity);
  core::QueuedRun queued(const core::Run& run);
  // Environments for which no sandbox fits now.
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
