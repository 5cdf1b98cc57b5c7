#include "store/sandboxes.hpp"

#include "store/constraint.hpp"
#include "store/moving.hpp"
#include "store/nodes.hpp"
#include "store/paging.hpp"

namespace berth::store {
namespace {

using core::Sandbox;
using core::SandboxState;

constexpr std::string_view noun = "Sandbox";

std::optional<Time> time_to_look(const Sandbox& sandbox, SandboxState state, Time now) {
  switch (state) {
    case SandboxState::creating: return sandbox.next_attempt_at;
    case SandboxState::idle: return sandbox.expires_at;
    case SandboxState::destroying: return now;
    case SandboxState::leased:
    case SandboxState::destroyed:
    case SandboxState::lost: break;
  }
  return std::nullopt;
}

}  // namespace

Result<> insert_sandbox(Session& session, const Sandbox& sandbox) {
  Result<> done = insert(session, sandbox);
  if (done || !violates_reference(done.error())) return done;
  return fail(Errc::environment_not_found, "Environment not found",
              "it was deleted while the sandbox was being made");
}

Result<Stored<Sandbox>> find_sandbox(Session& session, const core::Reach& reach,
                                     const core::SandboxId& id) {
  BERTH_TRY(auto found,
            select_one<Sandbox>(session, "where id = $1 and ($2 = '' or company_id = $2)", id,
                                reach.sql()));
  if (found) return *std::move(found);
  return fail(Errc::sandbox_not_found, "Sandbox not found",
              "it may have gone with its company or its plugin");
}

Result<Page<Sandbox>> list_sandboxes(Session& session, const core::CompanyId& company,
                                     const SandboxFilter& filter, const PageRequest& page) {
  Filter conditions;
  conditions.equal("company_id", company)
      .equal_if("status", filter.status)
      .equal_if("environment_id", filter.environment_id);
  return select_page(session, conditions, &Sandbox::created_at, page);
}

Result<std::optional<Stored<Sandbox>>> holder_of(Session& session, const core::LeaseRecord& lease,
                                                 const std::string& provider_lease_id) {
  static const std::string tail =
      "where company_id = $1 and provider = $2 and id <> $3"
      " and provider_lease_id = $4 and " +
      is_unfinished<SandboxState>() + " limit 1";
  const std::string own = lease.sandbox_id ? lease.sandbox_id->str() : std::string{};
  return select_one<Sandbox>(session, tail, lease.company_id, lease.provider.value_or(""), own,
                             provider_lease_id);
}

Result<Stored<Sandbox>> move_sandbox(Session& session, Stored<Sandbox> sandbox,
                                     core::SandboxEvent event, Time now) {
  Sandbox& value = sandbox.value;
  if (const auto next = core::advance(value.status, event)) {
    value.next_attempt_at = time_to_look(value, *next, now);
    if (*next == SandboxState::idle || core::is_final(*next)) value.lease_id.reset();
  }
  value.last_used_at = now;
  value.updated_at = now;
  return move_row(session, std::move(sandbox), event, noun);
}

Result<Stored<Sandbox>> bury_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  Sandbox& value = sandbox.value;
  BERTH_TRY(value.status, core::advance(value.status, core::SandboxEvent::destroy_begun));
  BERTH_TRY(value.status, core::advance(value.status, core::SandboxEvent::destroyed));
  value.next_attempt_at.reset();
  value.lease_id.reset();
  value.last_used_at = now;
  value.updated_at = now;
  return rewrite(session, std::move(sandbox), noun);
}

Result<Stored<Sandbox>> update_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  sandbox.value.updated_at = now;
  return rewrite(session, std::move(sandbox), noun);
}

Result<std::optional<Stored<Sandbox>>> claim_idle_sandbox(Session& session,
                                                          const SandboxClaim& claim, Time now) {
  static constexpr std::string_view tail =
      "where company_id = $1 and fingerprint = $2 and status = 'idle' and parked_at is null"
      " and (expires_at is null or expires_at > $3) and ($4 = '' or node_id = $4)"
      " order by last_used_at desc, id desc limit 1";
  const std::string sql = std::string{tail} + std::string{session.skip_locked()};
  const std::string holder = claim.must_be_own ? claim.node_id.str() : std::string{};
  BERTH_TRY(auto found,
            select_one<Sandbox>(session, sql, claim.company_id, claim.fingerprint, now, holder));
  if (!found) return std::nullopt;
  found->value.lease_id = claim.lease_id;
  found->value.node_id = claim.node_id;
  return move_sandbox(session, *std::move(found), core::SandboxEvent::claimed, now);
}

Result<std::vector<Stored<Sandbox>>> due_sandboxes(Session& session, const core::NodeId& node,
                                                   Time now, std::int64_t limit) {
  static const std::string tail = "where parked_at is null and " + is_unfinished<SandboxState>() +
                                  " and next_attempt_at <= $1 and " +
                                  is_for_node("sandboxes", "$2") +
                                  " order by next_attempt_at, id limit $3";
  return select<Sandbox>(session, tail, now, node, limit);
}

Result<Stored<Sandbox>> claim_due_sandbox(Session& session, Stored<Sandbox> sandbox,
                                          const core::NodeId& node, Time until, Time now) {
  sandbox.value.node_id = node;
  sandbox.value.next_attempt_at = until;
  ++sandbox.value.attempts;
  return update_sandbox(session, std::move(sandbox), now);
}

Result<Stored<Sandbox>> park_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  sandbox.value.parked_at = now;
  sandbox.value.next_attempt_at.reset();
  return update_sandbox(session, std::move(sandbox), now);
}

Result<Stored<Sandbox>> unpark_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  sandbox.value.parked_at.reset();
  sandbox.value.attempts = 0;
  sandbox.value.next_attempt_at = now;
  return update_sandbox(session, std::move(sandbox), now);
}

}  // namespace berth::store
