#include "engine/leases/sandbox_room.hpp"

#include "base/json/peek.hpp"
#include "core/config/environment_config.hpp"
#include "core/config/linux_config.hpp"
#include "store/companies.hpp"
#include "store/places/environments.hpp"
#include "store/places/sandboxes.hpp"

namespace berth::engine {
namespace {

bool is_on_this_machine(core::DriverKind driver, const bj::object& config) {
  return driver == core::DriverKind::sandbox && core::provider_of(config) == core::linux_provider;
}

// A config field and its upper bounds; 0 means no bound.
struct Bound {
  const char* field;
  std::int64_t instance;
  const char* setting;
  std::int64_t company;
  const char* flag;  // of 'berth company quota'; null: companies have no such quota
};

Result<> expect_within(const bj::object& config, const Bound& bound, const core::Company& company) {
  const auto given = peek<double>(config, bound.field);
  if (!given) return {};
  const double asked = *given;
  const bool is_over_instance = bound.instance > 0 && asked > static_cast<double>(bound.instance);
  const bool is_over_company = bound.company > 0 && asked > static_cast<double>(bound.company);
  if (!is_over_instance && !is_over_company) return {};
  const bool names_company =
      is_over_company && (!is_over_instance || bound.company < bound.instance);
  const std::string most = std::to_string(names_company ? bound.company : bound.instance);
  const std::string at = std::string{"/config/"} + bound.field;
  const std::string whose =
      names_company ? "company " + in_quotes(company.name) : std::string{"this instance"};
  const std::string raise =
      names_company ? "'berth company quota " + company.name + " " + bound.flag + " NUMBER'"
                    : std::string{"'berth settings set "} + bound.setting + "=NUMBER'";
  return std::unexpected(
      Error{Errc::unprocessable,
            at + " is " + encode_text(config.at(bound.field)) + ", and " + whose +
                " allows at most " + most,
            "ask for at most " + most + ", or let an administrator raise it with " + raise,
            {{at, "is more than " + most}}});
}

std::int64_t pool_size_of(const bj::object& config) {
  return read_loosely<core::LinuxConfig>(config).pool_size.value_or(0);
}

core::SandboxShare half_of(core::SandboxShare limit) {
  // Half of one must not round down to 0, which would mean no limit.
  const auto half = [](std::int64_t& each) { each = each == 0 ? 0 : std::max(each / 2, 1L); };
  half(limit.memory_mb);
  half(limit.disk_mb);
  half(limit.pids);
  half(limit.sandboxes);
  return limit;
}

}  // namespace

Result<> expect_in_bounds(store::Session& session, const core::CompanyId& company,
                          core::DriverKind driver, const bj::object& config) {
  if (!is_on_this_machine(driver, config)) return {};
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const Quota quota, quota_of(session, company, settings));
  BERTH_TRY(const auto row, store::find_company(session, core::Reach::everything(), company));
  const Bound bounds[] = {
      {"memoryMb", settings.sandbox_memory_mb_max, "sandboxMemoryMbMax", quota.sandboxes.memory_mb,
       "--memory-mb"},
      {"diskMb", settings.sandbox_disk_mb_max, "sandboxDiskMbMax", quota.sandboxes.disk_mb,
       "--disk-mb"},
      {"pids", settings.sandbox_pids_max, "sandboxPidsMax", quota.sandboxes.pids, "--pids"},
      {"cpus", settings.sandbox_cpus_max, "sandboxCpusMax", 0, ""},
      {"poolSize", settings.warm_sandboxes_max, "warmSandboxesMax", quota.warm_sandboxes_max,
       "--warm-sandboxes"}};
  for (const Bound& bound : bounds) BERTH_DO(expect_within(config, bound, row.value));
  return {};
}

PoolSizes fit_pools(const std::vector<core::Stored<core::Environment>>& environments,
                    const Quota& quota) {
  const core::SandboxShare limit = half_of(quota.sandboxes);
  core::SandboxShare taken;
  std::int64_t left = quota.warm_sandboxes_max;
  PoolSizes sizes;
  for (const auto& [environment, version] : environments) {
    const bool is_active = environment.status == core::EnvironmentStatus::active;
    if (!is_active || !is_on_this_machine(environment.driver, environment.config)) continue;
    const core::SandboxShare share = core::share_of(environment.config);
    std::int64_t& size = sizes[environment.id];
    for (std::int64_t i = pool_size_of(environment.config); i > 0; --i) {
      const bool is_over = quota.warm_sandboxes_max > 0 && left == 0;
      if (is_over || core::why_no_room(taken, share, limit)) break;
      taken += share;
      --left;
      ++size;
    }
  }
  return sizes;
}

Result<core::SandboxShare> sandboxes_in_use(store::Session& session, const core::CompanyId& company,
                                            const Quota& quota) {
  BERTH_TRY(const store::CompanyShare live, store::share_of_company(session, company));
  BERTH_TRY(const auto pooled, store::pooled_environments(session, company));
  core::SandboxShare all = live.all;
  const PoolSizes sizes = fit_pools(pooled, quota);
  for (const auto& [environment, version] : pooled) {
    const auto size = sizes.find(environment.id);
    if (size != sizes.end()) all += core::share_of(environment.config) * size->second;
  }
  return all;
}

Result<> expect_sandbox_room(store::Session& session, const core::CompanyId& company,
                             const bj::object& config) {
  const core::SandboxShare share = core::share_of(config);
  if (share == core::SandboxShare{}) return {};
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const Quota quota, quota_of(session, company, settings));
  if (quota.sandboxes == core::SandboxShare{}) return {};
  BERTH_TRY(const core::SandboxShare in_use, sandboxes_in_use(session, company, quota));
  const auto why = core::why_no_room(in_use, share, quota.sandboxes);
  if (!why) return {};
  return fail(Errc::quota_exceeded, "The company's sandboxes have no room for another one: " + *why,
              "end a run or a sandbox of the company, or raise the quota with "
              "'berth company quota'");
}

Result<> SandboxRooms::look(store::Session& session, const core::Run& run,
                            core::RunCapacity& capacity) {
  if (!run.environment_id || places_.contains(*run.environment_id)) return {};
  const auto row = store::find_environment(session, core::Reach::everything(), *run.environment_id);
  if (!row || !is_on_this_machine(row->value.driver, row->value.config)) return {};
  places_.emplace(*run.environment_id, Place{run.company_id, core::share_of(row->value.config)});
  if (!looked_.insert(run.company_id).second) return {};
  BERTH_TRY(const InstanceSettings settings, read_settings(session));
  BERTH_TRY(const Quota quota, quota_of(session, run.company_id, settings));
  core::RunCapacity::Room& room = capacity.rooms[run.company_id];
  if (quota.sandboxes == core::SandboxShare{}) return {};
  room.limit = quota.sandboxes;
  BERTH_TRY(room.in_use, sandboxes_in_use(session, run.company_id, quota));
  BERTH_TRY(const store::CompanyShare live, store::share_of_company(session, run.company_id));
  for (const auto& [environment, count] : live.idle) idle_[environment] += count;
  return {};
}

core::QueuedRun SandboxRooms::queued(const core::Run& run) {
  core::QueuedRun out{.id = run.id,
                      .company_id = run.company_id,
                      .agent_id = run.agent_id,
                      .environment_id = run.environment_id,
                      .begins_fresh = core::begins_fresh(run)};
  if (!run.environment_id) return out;
  const auto place = places_.find(*run.environment_id);
  if (place == places_.end()) return out;
  const auto idle = idle_.find(*run.environment_id);
  if (idle != idle_.end() && idle->second > 0) {
    --idle->second;
  } else {
    out.share = place->second.share;
  }
  return out;
}

std::vector<core::EnvironmentId> SandboxRooms::without_room(
    const core::RunCapacity& capacity) const {
  std::vector<core::EnvironmentId> out;
  for (const auto& [id, place] : places_) {
    const auto room = capacity.rooms.find(place.company);
    const auto idle = idle_.find(id);
    const bool may_reuse = idle != idle_.end() && idle->second > 0;
    if (room == capacity.rooms.end() || may_reuse) continue;
    if (core::why_no_room(room->second.in_use, place.share, room->second.limit)) out.push_back(id);
  }
  return out;
}

}  // namespace berth::engine
