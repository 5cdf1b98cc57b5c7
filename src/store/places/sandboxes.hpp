#pragma once

#include "core/access.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/sandbox.hpp"
#include "core/sandbox_share.hpp"
#include "store/sql/mapping.hpp"

// Resources of providers, apart from the leases that use them one after the other.
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

// environment_not_found when the company or the environment is gone.
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

// The sandbox in the state that follows on this event, with its other fields as they are given.
// The sweeper's time follows from the state: an idle sandbox is looked at when it expires, one that
// is leased or gone not at all, and one that is to be destroyed at once, so that whoever begins it
// also claims it, in the same transaction. Whoever gives it back or ends it no longer holds it.
// `conflict` when the event does not follow, or somebody was faster.
Result<Stored<core::Sandbox>> move_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           core::SandboxEvent event, Time now);
// A sandbox that is gone: begins to be destroyed and is, in one write.
Result<Stored<core::Sandbox>> bury_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           Time now);
// The same without a change of state.
Result<Stored<core::Sandbox>> update_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                             Time now);

// What it may take of this machine counts from now on until it is gone.
Result<> record_share(Session& session, const core::SandboxId& id, const core::SandboxShare& share);
// What the live sandboxes of one company may take together, and those of them that wait to be
// reused, by their environment.
struct CompanyShare {
  core::SandboxShare all = {};
  std::map<core::EnvironmentId, std::int64_t> idle = {};
};
Result<CompanyShare> share_of_company(Session& session, const core::CompanyId& company);
// Those that wait to be reused end now, but for those of one environment: somebody waits for room.
Result<> expire_idle_sandboxes(Session& session, const core::CompanyId& company,
                               const core::EnvironmentId& spared, Time now);

// Who takes an idle sandbox, and which one will do.
struct SandboxClaim {
  core::CompanyId company_id;
  std::string fingerprint;
  core::LeaseId lease_id;
  core::NodeId node_id;
  // Where one of another server is out of reach.
  bool must_be_own = false;
  std::optional<core::SandboxId> only = {};  // no other one will do
};
// The idle sandbox that was used last, leased; nothing when none fits. Claimers at the same time
// get different ones.
Result<std::optional<Stored<core::Sandbox>>> claim_idle_sandbox(Session& session,
                                                                const SandboxClaim& claim,
                                                                Time now);

// What the sweeper has to look at, the longest overdue first: neither final, nor parked, nor of
// another node that is alive.
Result<std::vector<Stored<core::Sandbox>>> due_sandboxes(Session& session, const core::NodeId& node,
                                                         Time now, std::int64_t limit);
// Takes a due sandbox for one attempt, which is counted: nobody else finds it due before `until`.
Result<Stored<core::Sandbox>> claim_due_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                                const core::NodeId& node, Time until, Time now);
// Out of the sweeper's sight until an operator says otherwise.
Result<Stored<core::Sandbox>> park_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                           Time now);
// Due at once, with its attempts forgotten.
Result<Stored<core::Sandbox>> unpark_sandbox(Session& session, Stored<core::Sandbox> sandbox,
                                             Time now);

}  // namespace berth::store
