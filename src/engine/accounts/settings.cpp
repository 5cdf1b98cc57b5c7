#include "engine/accounts/settings.hpp"

#include "base/log.hpp"
#include "core/sandbox_share.hpp"
#include "engine/environments/checks.hpp"
#include "store/settings.hpp"

#include <unistd.h>

namespace berth::engine {
namespace {

const std::string setting_name = "instance";
constexpr std::int64_t retention_hours_max = 24 * 30;

// A numeric retention or quota setting, and its valid range.
struct NumberRule {
  std::int64_t InstanceSettings::* setting;
  Patch<std::int64_t> UpdateSettings::* change;
  std::string_view at;
  std::int64_t most;
};
constexpr std::int64_t days_max = 36'500;
constexpr std::int64_t bytes_max = std::int64_t{1} << 50;
constexpr std::int64_t payload_bytes_most = std::int64_t{1} << 20;
constexpr std::int64_t share_max = std::int64_t{1} << 40;
constexpr NumberRule number_rules[] = {
    {&InstanceSettings::run_retention_days, &UpdateSettings::run_retention_days,
     "/runRetentionDays", days_max},
    {&InstanceSettings::log_retention_days, &UpdateSettings::log_retention_days,
     "/logRetentionDays", days_max},
    {&InstanceSettings::event_retention_days, &UpdateSettings::event_retention_days,
     "/eventRetentionDays", days_max},
    {&InstanceSettings::company_bytes_max, &UpdateSettings::company_bytes_max, "/companyBytesMax",
     bytes_max},
    {&InstanceSettings::company_runs_max, &UpdateSettings::company_runs_max, "/companyRunsMax",
     1'000'000},
    {&InstanceSettings::payload_bytes_max, &UpdateSettings::payload_bytes_max, "/payloadBytesMax",
     payload_bytes_most},
    {&InstanceSettings::agent_wakeups_per_minute, &UpdateSettings::agent_wakeups_per_minute,
     "/agentWakeupsPerMinute", 100'000},
    {&InstanceSettings::sandbox_memory_mb_max, &UpdateSettings::sandbox_memory_mb_max,
     "/sandboxMemoryMbMax", share_max},
    {&InstanceSettings::sandbox_disk_mb_max, &UpdateSettings::sandbox_disk_mb_max,
     "/sandboxDiskMbMax", share_max},
    {&InstanceSettings::sandbox_pids_max, &UpdateSettings::sandbox_pids_max, "/sandboxPidsMax",
     share_max},
    {&InstanceSettings::sandbox_cpus_max, &UpdateSettings::sandbox_cpus_max, "/sandboxCpusMax",
     share_max},
    {&InstanceSettings::company_memory_mb_max, &UpdateSettings::company_memory_mb_max,
     "/companyMemoryMbMax", share_max},
    {&InstanceSettings::company_disk_mb_max, &UpdateSettings::company_disk_mb_max,
     "/companyDiskMbMax", share_max},
    {&InstanceSettings::company_pids_max, &UpdateSettings::company_pids_max, "/companyPidsMax",
     share_max},
    {&InstanceSettings::company_sandboxes_max, &UpdateSettings::company_sandboxes_max,
     "/companySandboxesMax", share_max},
    {&InstanceSettings::company_warm_sandboxes_max, &UpdateSettings::company_warm_sandboxes_max,
     "/companyWarmSandboxesMax", share_max},
    {&InstanceSettings::warm_sandboxes_max, &UpdateSettings::warm_sandboxes_max,
     "/warmSandboxesMax", share_max},
    {&InstanceSettings::agent_home_bytes_max, &UpdateSettings::agent_home_bytes_max,
     "/agentHomeBytesMax", bytes_max},
    {&InstanceSettings::agent_home_files_max, &UpdateSettings::agent_home_files_max,
     "/agentHomeFilesMax", 100'000'000},
};

std::int64_t memory_of_machine_mb() {
  return ::sysconf(_SC_PHYS_PAGES) / 1024 * ::sysconf(_SC_PAGESIZE) / 1024;
}

// One sandbox may use at most the whole machine. A company's sandboxes together may ask for more,
// because few use what they may. The floor lets a small machine run sixteen default ones.
void bound_by_machine(InstanceSettings& settings) {
  constexpr std::int64_t overcommitment = 8;
  constexpr std::int64_t floor_mb = 64 * 1024;
  const std::int64_t memory_mb = memory_of_machine_mb();
  settings.sandbox_memory_mb_max = std::max(memory_mb, core::usual_memory_mb);
  settings.sandbox_disk_mb_max = std::max(memory_mb, core::usual_disk_mb);
  settings.sandbox_pids_max = 65'536;
  settings.company_memory_mb_max = std::max(memory_mb * overcommitment, floor_mb);
  settings.company_disk_mb_max = settings.company_memory_mb_max;
  settings.company_pids_max = 1'000'000;
  settings.company_sandboxes_max = 500;
  settings.company_warm_sandboxes_max = 32;
  settings.warm_sandboxes_max = 64;
}

InstanceSettings first_settings() {
  InstanceSettings settings;
  bound_by_machine(settings);
  settings.run_retention_days = 90;
  settings.log_retention_days = 30;
  settings.event_retention_days = 30;
  settings.company_bytes_max = std::int64_t{20} << 30;
  settings.company_runs_max = 5000;
  return settings;
}

void take_numbers(InstanceSettings& settings, const UpdateSettings& given) {
  for (const NumberRule& rule : number_rules) {
    settings.*rule.setting = (given.*rule.change).or_else(settings.*rule.setting);
  }
}

Result<> check_numbers(const UpdateSettings& given) {
  for (const NumberRule& rule : number_rules) {
    BERTH_DO(not_null(given.*rule.change, rule.at));
    const auto& number = (given.*rule.change).value;
    if (!number || (*number >= 0 && *number <= rule.most)) continue;
    const std::string range = "from 0 to " + std::to_string(rule.most);
    return std::unexpected(Error{Errc::validation_failed,
                                 std::string{rule.at} + " must be " + range,
                                 "send a number " + range + "; 0 is without a limit",
                                 {{std::string{rule.at}, "is out of range"}}});
  }
  return {};
}

// A field missing from the stored document has its default: documents from older versions remain
// readable.
Result<core::Stored<InstanceSettings>> read_stored(store::Session& session) {
  BERTH_TRY(const auto found, store::find_setting(session, setting_name));
  core::Stored<InstanceSettings> out{{}, 0};
  if (!found) return out;
  BERTH_TRY(const auto given, decode<UpdateSettings>(found->value, UnknownKeys::ignore));
  out.value.strict_secrets = given.strict_secrets.or_else(out.value.strict_secrets);
  out.value.answer_retention_hours =
      given.answer_retention_hours.or_else(out.value.answer_retention_hours);
  out.value.enable_sandbox_duplex_bridge =
      given.enable_sandbox_duplex_bridge.or_else(out.value.enable_sandbox_duplex_bridge);
  take_numbers(out.value, given);
  out.version = found->version;
  return out;
}

}  // namespace

Result<InstanceSettings> read_settings(store::Session& session) {
  BERTH_TRY(const auto stored, read_stored(session));
  return stored.value;
}

Result<> save_first_settings(store::Session& session, Time now) {
  BERTH_TRY(const auto found, store::find_setting(session, setting_name));
  if (found) return {};
  const bj::value document = encode(first_settings());
  return store::save_setting(session, setting_name, document.get_object(), 0, now);
}

Task<core::Stored<InstanceSettings>> Settings::get(core::Call /*call*/) {
  co_return co_await services_.store.read(read_stored);
}

Task<core::Stored<InstanceSettings>> Settings::update(core::Call call, UpdateSettings change) {
  BERTH_CO_DO(not_null(change.strict_secrets, "/strictSecrets"));
  BERTH_CO_DO(not_null(change.answer_retention_hours, "/answerRetentionHours"));
  BERTH_CO_DO(not_null(change.enable_sandbox_duplex_bridge, "/enableSandboxDuplexBridge"));
  BERTH_CO_DO(check_numbers(change));
  const auto& hours = change.answer_retention_hours.value;
  if (hours && (*hours < 1 || *hours > retention_hours_max)) {
    co_return std::unexpected(Error{Errc::validation_failed,
                                    "/answerRetentionHours must be from 1 to 720",
                                    "send a number of hours from 1 to 720",
                                    {{"/answerRetentionHours", "is out of range"}}});
  }
  const auto work = [&](store::Session& s) -> Result<core::Stored<InstanceSettings>> {
    BERTH_TRY(auto row, read_stored(s));
    BERTH_DO(expect_version(call, row.version));
    row.value.strict_secrets = change.strict_secrets.or_else(row.value.strict_secrets);
    row.value.answer_retention_hours =
        change.answer_retention_hours.or_else(row.value.answer_retention_hours);
    row.value.enable_sandbox_duplex_bridge =
        change.enable_sandbox_duplex_bridge.or_else(row.value.enable_sandbox_duplex_bridge);
    take_numbers(row.value, change);
    const bj::value document = encode(row.value);
    BERTH_DO(store::save_setting(s, setting_name, document.get_object(), row.version,
                                 services_.clock.now()));
    ++row.version;
    return row;
  };
  BERTH_CO_TRY(auto row, co_await services_.store.write(work));
  log::info("settings.updated", {{"by", call.who.actor_id()}});
  co_return row;
}

}  // namespace berth::engine
