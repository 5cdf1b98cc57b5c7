#include "engine/accounts/quotas.hpp"

#include "engine/environments/checks.hpp"
#include "engine/journal.hpp"
#include "engine/leases/sandbox_room.hpp"
#include "engine/runs/run_limits.hpp"
#include "store/companies.hpp"
#include "store/retention.hpp"

namespace berth::engine {
namespace {

constexpr std::int64_t counted_runs_max = 100'000;

std::optional<std::int64_t> shown_limit(std::int64_t limit) {
  return limit > 0 ? std::optional{limit} : std::nullopt;
}

std::string raise_with(const core::Company& company, std::string_view flag) {
  return "'berth company quota " + company.name + " " + std::string{flag} + " NUMBER'";
}

Result<> check_limit(const Patch<std::int64_t>& limit, std::string_view at) {
  constexpr std::int64_t most = std::int64_t{1} << 50;
  if (!limit.value || (*limit.value >= 0 && *limit.value <= most)) return {};
  return std::unexpected(Error{Errc::validation_failed,
                               std::string{at} + " must be from 0 to " + std::to_string(most),
                               "send 0 for no limit, or null for the limit of the instance",
                               {{std::string{at}, "is out of range"}}});
}

struct QuotaField {
  const char* name;
  Patch<std::int64_t> UpdateQuota::* change;
};
constexpr QuotaField quota_fields[] = {
    {"bytesMax", &UpdateQuota::bytes_max},
    {"runsMax", &UpdateQuota::runs_max},
    {"payloadBytesMax", &UpdateQuota::payload_bytes_max},
    {"memoryMbMax", &UpdateQuota::memory_mb_max},
    {"diskMbMax", &UpdateQuota::disk_mb_max},
    {"pidsMax", &UpdateQuota::pids_max},
    {"sandboxesMax", &UpdateQuota::sandboxes_max},
    {"warmSandboxesMax", &UpdateQuota::warm_sandboxes_max},
};

// Absent fields follow the instance.
void lay(bj::object& quota, const char* name, const Patch<std::int64_t>& change) {
  if (!change.given) return;
  if (change.value) {
    quota[name] = *change.value;
  } else {
    quota.erase(name);
  }
}

}  // namespace

Result<Quota> quota_of(store::Session& session, const core::CompanyId& company,
                       const InstanceSettings& settings) {
  BERTH_TRY(const bj::object stored, store::find_quota(session, company));
  BERTH_TRY(const auto own, decode<UpdateQuota>(stored, UnknownKeys::ignore));
  return Quota{
      .bytes_max = own.bytes_max.or_else(settings.company_bytes_max),
      .runs_max = own.runs_max.or_else(settings.company_runs_max),
      .payload_bytes_max = own.payload_bytes_max.or_else(settings.payload_bytes_max),
      .sandboxes = {.memory_mb = own.memory_mb_max.or_else(settings.company_memory_mb_max),
                    .disk_mb = own.disk_mb_max.or_else(settings.company_disk_mb_max),
                    .pids = own.pids_max.or_else(settings.company_pids_max),
                    .sandboxes = own.sandboxes_max.or_else(settings.company_sandboxes_max)},
      .warm_sandboxes_max = own.warm_sandboxes_max.or_else(settings.company_warm_sandboxes_max)};
}

Task<> Quotas::expect_room(core::Call call, FindCompany find) {
  const Result<> room = co_await services_.store.read([&](store::Session& s) -> Result<> {
    BERTH_TRY(const core::CompanyId id, find(s));
    BERTH_TRY(const auto company, store::find_company(s, core::Reach::of(call.who), id));
    return expect_room(s, company.value);
  });
  if (!room && room.error().code == Errc::quota_exceeded) co_return room;
  co_return Result<>{};
}

Result<> Quotas::expect_room(store::Session& session, const core::Company& company) const {
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const Quota quota, quota_of(session, company.id, settings));
  const std::int64_t stored = bytes(company.id);
  if (quota.bytes_max > 0 && stored >= quota.bytes_max) {
    return fail(Errc::quota_exceeded,
                "Company " + company.name + " stores " + std::to_string(stored) +
                    " bytes of runs, and its quota is " + std::to_string(quota.bytes_max),
                "delete runs with 'berth run delete', set logRetentionDays, or raise the quota: " +
                    raise_with(company, "--bytes"));
  }
  if (quota.runs_max == 0) return {};
  BERTH_TRY(const std::int64_t runs,
            store::count_unfinished_runs(session, company.id, quota.runs_max));
  if (runs < quota.runs_max) return {};
  return fail(Errc::quota_exceeded,
              "Company " + company.name + " has " + std::to_string(runs) +
                  " runs that wait or work, and its quota is " + std::to_string(quota.runs_max),
              "wait until some of them have ended, cancel some, or raise the quota: " +
                  raise_with(company, "--runs"));
}

void Quotas::add(const core::CompanyId& company, std::int64_t bytes) {
  const std::lock_guard lock{mutex_};
  std::int64_t& counted = bytes_[company];
  counted = std::max<std::int64_t>(0, counted + bytes);
}

std::int64_t Quotas::bytes(const core::CompanyId& company) const {
  const std::lock_guard lock{mutex_};
  const auto found = bytes_.find(company);
  return found == bytes_.end() ? 0 : found->second;
}

Task<> Quotas::recount() {
  BERTH_CO_TRY(const auto counted, co_await services_.store.read(store::stored_bytes));
  std::map<core::CompanyId, std::int64_t> bytes;
  for (const store::CompanyBytes& each : counted) bytes[each.company_id] = each.bytes;
  const std::lock_guard lock{mutex_};
  bytes_ = std::move(bytes);
  co_return Result<>{};
}

Result<CompanyUsage> Quotas::look(store::Session& session, const core::CompanyId& company) const {
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const Quota quota, quota_of(session, company, settings));
  BERTH_TRY(const std::int64_t runs,
            store::count_unfinished_runs(session, company, counted_runs_max));
  BERTH_TRY(const core::SandboxShare taken, sandboxes_in_use(session, company, quota));
  return CompanyUsage{.company_id = company,
                      .bytes = bytes(company),
                      .bytes_max = shown_limit(quota.bytes_max),
                      .runs = runs,
                      .runs_max = shown_limit(quota.runs_max),
                      .payload_bytes_max = shown_limit(quota.payload_bytes_max),
                      .agent_payload_bytes_max = agent_payload_bytes_max(quota),
                      .memory_mb = taken.memory_mb,
                      .memory_mb_max = shown_limit(quota.sandboxes.memory_mb),
                      .disk_mb = taken.disk_mb,
                      .disk_mb_max = shown_limit(quota.sandboxes.disk_mb),
                      .pids = taken.pids,
                      .pids_max = shown_limit(quota.sandboxes.pids),
                      .sandboxes = taken.sandboxes,
                      .sandboxes_max = shown_limit(quota.sandboxes.sandboxes),
                      .warm_sandboxes_max = shown_limit(quota.warm_sandboxes_max)};
}

Task<CompanyUsage> Quotas::usage(core::Call call, core::CompanyId company) {
  co_return co_await services_.store.read([&](store::Session& s) -> Result<CompanyUsage> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    return look(s, company);
  });
}

Task<CompanyUsage> Quotas::update(core::Call call, core::CompanyId company, UpdateQuota change) {
  for (const QuotaField& field : quota_fields) {
    BERTH_CO_DO(check_limit(change.*field.change, "/" + std::string{field.name}));
  }
  const auto work = [&](store::Session& s) -> Result<CompanyUsage> {
    BERTH_DO(store::expect_company(s, core::Reach::of(call.who), company));
    BERTH_TRY(bj::object quota, store::find_quota(s, company));
    for (const QuotaField& field : quota_fields) lay(quota, field.name, change.*field.change);
    BERTH_DO(store::save_quota(s, company, quota));
    BERTH_DO(record(
        s, services_, call,
        {company, "company.quota_changed", "company", company.str(), changed_fields(change)}));
    return look(s, company);
  };
  BERTH_CO_TRY(const CompanyUsage usage, co_await services_.store.write(work));
  services_.feed.changed(company);
  services_.feed.environments_changed();  // pools depend on the quota
  co_return usage;
}

}  // namespace berth::engine
