#pragma once

#include "core/call.hpp"
#include "core/rows/company.hpp"
#include "core/sandbox_share.hpp"
#include "engine/accounts/settings.hpp"
#include "engine/services.hpp"

#include <functional>
#include <map>
#include <mutex>

namespace berth::engine {

// The limits of one company. 0 means no limit.
struct Quota {
  std::int64_t bytes_max = 0;
  std::int64_t runs_max = 0;
  std::int64_t payload_bytes_max = 0;
  core::SandboxShare sandboxes = {};  // what they may use together
  std::int64_t warm_sandboxes_max = 0;
};

// What a company uses, and what it may use.
struct CompanyUsage {
  core::CompanyId company_id;
  std::int64_t bytes = 0;  // logs and payloads of its finished runs
  std::optional<std::int64_t> bytes_max = {};
  std::int64_t runs = 0;  // queued and active runs
  std::optional<std::int64_t> runs_max = {};
  std::optional<std::int64_t> payload_bytes_max = {};  // per wakeup by an operator
  std::int64_t agent_payload_bytes_max = 0;            // the same, by the agent itself
  // What the sandboxes on this machine may use together: live ones and warm ones.
  std::int64_t memory_mb = 0;
  std::optional<std::int64_t> memory_mb_max = {};
  std::int64_t disk_mb = 0;
  std::optional<std::int64_t> disk_mb_max = {};
  std::int64_t pids = 0;
  std::optional<std::int64_t> pids_max = {};
  std::int64_t sandboxes = 0;
  std::optional<std::int64_t> sandboxes_max = {};
  std::optional<std::int64_t> warm_sandboxes_max = {};
};
BOOST_DESCRIBE_STRUCT(CompanyUsage, (),
                      (company_id, bytes, bytes_max, runs, runs_max, payload_bytes_max,
                       agent_payload_bytes_max, memory_mb, memory_mb_max, disk_mb, disk_mb_max,
                       pids, pids_max, sandboxes, sandboxes_max, warm_sandboxes_max))

// A company's limits in place of the instance's; null restores the instance's limit, 0 means no
// limit.
struct UpdateQuota {
  Patch<std::int64_t> bytes_max;
  Patch<std::int64_t> runs_max;
  Patch<std::int64_t> payload_bytes_max;
  Patch<std::int64_t> memory_mb_max;
  Patch<std::int64_t> disk_mb_max;
  Patch<std::int64_t> pids_max;
  Patch<std::int64_t> sandboxes_max;
  Patch<std::int64_t> warm_sandboxes_max;
};
BOOST_DESCRIBE_STRUCT(UpdateQuota, (),
                      (bytes_max, runs_max, payload_bytes_max, memory_mb_max, disk_mb_max, pids_max,
                       sandboxes_max, warm_sandboxes_max))

// What companies store and how much they may. Bytes are counted in memory, so that a request's cost
// does not depend on the length of the history. The count is reloaded from the store from time to
// time; in between it follows what this server adds and removes. Servers that share a store see
// each other's runs at the next recount.
class Quotas {
 public:
  explicit Quotas(Services& services) : services_(services) {}

  Task<CompanyUsage> usage(core::Call call, core::CompanyId company);
  Task<CompanyUsage> update(core::Call call, core::CompanyId company, UpdateQuota change);

  // Before a run is added: quota_exceeded when its company has no room for it. Uses a separate
  // transaction, because PostgreSQL would otherwise retry one of two concurrent inserts in a
  // company. Errors from `find` are left to the transaction that adds the run.
  using FindCompany = std::function<Result<core::CompanyId>(store::Session&)>;
  Task<> expect_room(core::Call call, FindCompany find);
  void add(const core::CompanyId& company, std::int64_t bytes);
  std::int64_t bytes(const core::CompanyId& company) const;
  Task<> recount();

 private:
  Result<> expect_room(store::Session& session, const core::Company& company) const;
  Result<CompanyUsage> look(store::Session& session, const core::CompanyId& company) const;

  Services& services_;
  mutable std::mutex mutex_;  // the loop counts, transactions read
  std::map<core::CompanyId, std::int64_t> bytes_;
};

Result<Quota> quota_of(store::Session& session, const core::CompanyId& company,
                       const InstanceSettings& settings);

}  // namespace berth::engine
