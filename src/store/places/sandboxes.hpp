#pragma once

#include "core/access.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/sandbox.hpp"
#include "core/sandbox_share.hpp"
#include "store/sql/mapping.hpp"

// Provider resources, separate from the leases that use them one after another.
namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Sandbox> = "sandboxes";
template <>
inline constexpr std::string_view fixed_columns_of<core::Sandbox> =
    "company_id environment_id agent_id execution_workspace_id provider plugin_id plugin_version"
    " created_at";

struct SandboxFilter {
  std::optional<core::SandboxState> status = {};
  std::optional<core::EnvironmentId> environment_id = {};
};

// environment_not_found when the company or the environment no longer exists.
Result<> insert_sandbox(Session& session, const core::Sandbox& sandbox);
Result<Stored<core::Sandbox>> find_sandbox(Session& session, const core::Reach& reach,
                                           const core::SandboxId& id);
// Ordered by (created_at, id) descending.
Result<Page<core::Sandbox>> list_sandboxes(Session& session, const core::CompanyId& company,
                                           const SandboxFilter& filter, const PageRequest& page);

// The unfinished sandbox of the lease's provider that has this name there, other than its own. Of
// any company: companies may share an account at a provider, and then the name is that sandbox.
Result<std::optional<Stored<core::Sandbox>>> holder_of(Session& session,
                                                       const core::LeaseRecord& lease,
                                                       const std::string& provider_lease_id);

// Moves the sandbox to the state that follows on this event, with its other fields as given. The
// state sets the due time: an idle sandbox is due when it expires, a leased or final one never. One
// to be destroyed is due at once; a caller that destroys it itself also claims it in the same
// transaction. A sandbox that is given back or ended loses its lease. `conflict` when the event is
// not allowed, or another writer was faster.
Result<Stored<core::Sandbox>> move_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           core::SandboxEvent event, Time now);
// For a sandbox that no longer exists: moves it through destroying to destroyed in one write.
Result<Stored<core::Sandbox>> bury_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           Time now);
// The same without a state change.
Result<Stored<core::Sandbox>> update_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                             Time now);

// Its share of this machine counts from now until it is destroyed.
Result<> record_share(Session& session, const core::SandboxId& id, const core::SandboxShare& share);
// What a company's live sandboxes may use together, and the idle ones among them by environment.
struct CompanyShare {
  core::SandboxShare all = {};
  std::map<core::EnvironmentId, std::int64_t> idle = {};
};
Result<CompanyShare> share_of_company(Session& session, const core::CompanyId& company);
// Expires the idle sandboxes now, except those of one environment, because a run waits for room.
Result<> expire_idle_sandboxes(Session& session, const core::CompanyId& company,
                               const core::EnvironmentId& spared, Time now);

// A claim for an idle sandbox, and which one is acceptable.
struct SandboxClaim {
  core::CompanyId company_id;
  std::string fingerprint;
  core::LeaseId lease_id;
  core::NodeId node_id;
  // Set when another server's sandbox is out of reach.
  bool must_be_own = false;
  std::optional<core::SandboxId> only = {};  // accept only this one
};
// The most recently used idle sandbox, now leased; empty when none fits. Concurrent claims get
// different ones.
Result<std::optional<Stored<core::Sandbox>>> claim_idle_sandbox(Session& session,
                                                                const SandboxClaim& claim,
                                                                Time now);

// Sandboxes for the sweeper, the longest overdue first: not final, parked, or owned by another live
// node.
Result<std::vector<Stored<core::Sandbox>>> due_sandboxes(Session& session, const core::NodeId& node,
                                                         Time now, std::int64_t limit);
// Claims a due sandbox for one attempt, which is counted: no other sweeper finds it due before
// `until`.
Result<Stored<core::Sandbox>> claim_due_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                                const core::NodeId& node, Time until, Time now);
// Hides the sandbox from the sweeper until an operator acts.
Result<Stored<core::Sandbox>> park_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           Time now);
// Makes the sandbox due at once and resets its attempts.
Result<Stored<core::Sandbox>> unpark_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                             Time now);

}  // namespace berth::store
