#include "store/places/sandboxes.hpp"

#include "store/nodes.hpp"
#include "store/sql/constraint.hpp"
#include "store/sql/moving.hpp"
#include "store/sql/paging.hpp"

namespace berth::store {
namespace {

using core::Sandbox;
using core::SandboxState;

constexpr std::string_view sandbox_noun = "Sandbox";

std::optional<Time> time_to_look_at_sandbox(const Sandbox& sandbox, SandboxState state, Time now) {
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
      "where provider = $1 and id <> $2 and provider_lease_id = $3 and " +
      is_unfinished<SandboxState>() + " limit 1";
  const std::string own = lease.sandbox_id ? lease.sandbox_id->str() : std::string{};
  return select_one<Sandbox>(session, tail, lease.provider.value_or(""), own, provider_lease_id);
}

Result<Stored<Sandbox>> move_sandbox(Session& session, Stored<Sandbox> sandbox,
                                     core::SandboxEvent event, Time now) {
  Sandbox& value = sandbox.value;
  if (const auto next = core::advance(value.status, event)) {
    value.next_attempt_at = time_to_look_at_sandbox(value, *next, now);
    if (*next == SandboxState::idle || core::is_final(*next)) value.lease_id.reset();
  }
  value.last_used_at = now;
  value.updated_at = now;
  return move_row(session, std::move(sandbox), event, sandbox_noun);
}

Result<Stored<Sandbox>> bury_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  Sandbox& value = sandbox.value;
  BERTH_TRY(value.status, core::advance(value.status, core::SandboxEvent::destroy_begun));
  BERTH_TRY(value.status, core::advance(value.status, core::SandboxEvent::destroyed));
  value.next_attempt_at.reset();
  value.lease_id.reset();
  value.last_used_at = now;
  value.updated_at = now;
  return rewrite(session, std::move(sandbox), sandbox_noun);
}

Result<Stored<Sandbox>> update_sandbox(Session& session, Stored<Sandbox> sandbox, Time now) {
  sandbox.value.updated_at = now;
  return rewrite(session, std::move(sandbox), sandbox_noun);
}

Result<> record_share(Session& session, const core::SandboxId& id,
                      const core::SandboxShare& share) {
  BERTH_DO(query(session,
                 "update sandboxes set memory_mb = $2, disk_mb = $3, pids = $4, counted = $5"
                 " where id = $1",
                 id, share.memory_mb, share.disk_mb, share.pids, share.sandboxes));
  return {};
}

Result<CompanyShare> share_of_company(Session& session, const core::CompanyId& company) {
  static const std::string sql =
      "select environment_id, status, sum(memory_mb), sum(disk_mb), sum(pids), sum(counted)"
      " from sandboxes where company_id = $1 and counted > 0 and " +
      is_unfinished<SandboxState>() + " group by environment_id, status";
  BERTH_TRY(const Rows found, query(session, sql, company));
  constexpr auto table = table_of<Sandbox>;
  const auto number = [&](const Value& value) {
    return mapping_detail::to_integer(value, table, "share");
  };
  CompanyShare out;
  for (const std::vector<Value>& row : found.rows) {
    core::SandboxShare share;
    BERTH_TRY(share.memory_mb, number(row.at(2)));
    BERTH_TRY(share.disk_mb, number(row.at(3)));
    BERTH_TRY(share.pids, number(row.at(4)));
    BERTH_TRY(share.sandboxes, number(row.at(5)));
    out.all += share;
    BERTH_TRY(const auto environment,
              from_value<std::optional<core::EnvironmentId>>(row.at(0), table, "environment_id"));
    BERTH_TRY(const auto state, from_value<SandboxState>(row.at(1), table, "status"));
    if (environment && state == SandboxState::idle) out.idle[*environment] += share.sandboxes;
  }
  return out;
}

Result<> expire_idle_sandboxes(Session& session, const core::CompanyId& company,
                               const core::EnvironmentId& spared, Time now) {
  BERTH_DO(query(session,
                 "update sandboxes set expires_at = $3, next_attempt_at = $3, updated_at = $3,"
                 " version = version + 1 where company_id = $1 and status = 'idle'"
                 " and counted > 0 and parked_at is null and environment_id <> $2"
                 " and (expires_at is null or expires_at > $3)",
                 company, spared, now));
  return {};
}

Result<std::optional<Stored<Sandbox>>> claim_idle_sandbox(Session& session,
                                                          const SandboxClaim& claim, Time now) {
  static constexpr std::string_view tail =
      "where company_id = $1 and fingerprint = $2 and status = 'idle' and parked_at is null"
      " and (expires_at is null or expires_at > $3) and ($4 = '' or node_id = $4)"
      " and ($5 = '' or id = $5)"
      " order by last_used_at desc, id desc limit 1";
  const std::string sql = std::string{tail} + std::string{session.skip_locked()};
  const std::string holder = claim.must_be_own ? claim.node_id.str() : std::string{};
  const std::string only = claim.only ? claim.only->str() : std::string{};
  BERTH_TRY(auto found, select_one<Sandbox>(session, sql, claim.company_id, claim.fingerprint, now,
                                            holder, only));
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
