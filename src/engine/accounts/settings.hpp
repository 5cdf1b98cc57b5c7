#pragma once

#include "core/call.hpp"
#include "core/config/bindings.hpp"
#include "core/page.hpp"
#include "engine/services.hpp"

namespace berth::engine {

// What an administrator sets for the whole instance.
struct InstanceSettings {
  bool strict_secrets = false;  // reject plain values for variables whose name looks like a secret
  std::int64_t answer_retention_hours =
      24;  // how long a repeated Idempotency-Key gets the same response

  // Commands in plugin sandboxes may receive input while they run.
  bool enable_sandbox_duplex_bridge = false;

  // Retention and quotas. 0 means no limit, so that a home from before these settings keeps its
  // data; a new home begins with first_settings().
  std::int64_t run_retention_days = 0;    // finished runs, with their logs and events
  std::int64_t log_retention_days = 0;    // logs of finished runs
  std::int64_t event_retention_days = 0;  // events of finished runs
  std::int64_t company_bytes_max = 0;     // logs and payloads of one company's runs
  std::int64_t company_runs_max = 0;      // queued and active runs of one company
  std::int64_t payload_bytes_max = std::int64_t{256} << 10;  // per wakeup by an operator
  std::int64_t agent_wakeups_per_minute = 30;                // for an agent that wakes itself
  // For what one agent keeps in one environment.
  std::int64_t agent_home_bytes_max = std::int64_t{4} << 30;
  std::int64_t agent_home_files_max = 200'000;

  // What one sandbox on this machine may request, what a company's sandboxes may use together, and
  // how many are kept warm. 0 means no limit, as above.
  std::int64_t sandbox_memory_mb_max = 0;
  std::int64_t sandbox_disk_mb_max = 0;
  std::int64_t sandbox_pids_max = 0;
  std::int64_t sandbox_cpus_max = 0;
  std::int64_t company_memory_mb_max = 0;
  std::int64_t company_disk_mb_max = 0;
  std::int64_t company_pids_max = 0;
  std::int64_t company_sandboxes_max = 0;
  std::int64_t company_warm_sandboxes_max = 0;
  std::int64_t warm_sandboxes_max = 0;  // all companies together

  core::PlainSecrets plain_secrets() const {
    return strict_secrets ? core::PlainSecrets::refused : core::PlainSecrets::allowed;
  }
};
BOOST_DESCRIBE_STRUCT(InstanceSettings, (),
                      (strict_secrets, answer_retention_hours, enable_sandbox_duplex_bridge,
                       run_retention_days, log_retention_days, event_retention_days,
                       company_bytes_max, company_runs_max, payload_bytes_max,
                       agent_wakeups_per_minute, agent_home_bytes_max, agent_home_files_max,
                       sandbox_memory_mb_max, sandbox_disk_mb_max, sandbox_pids_max,
                       sandbox_cpus_max, company_memory_mb_max, company_disk_mb_max,
                       company_pids_max, company_sandboxes_max, company_warm_sandboxes_max,
                       warm_sandboxes_max))

struct UpdateSettings {
  Patch<bool> strict_secrets;
  Patch<std::int64_t> answer_retention_hours;
  Patch<bool> enable_sandbox_duplex_bridge;

  Patch<std::int64_t> run_retention_days;
  Patch<std::int64_t> log_retention_days;
  Patch<std::int64_t> event_retention_days;
  Patch<std::int64_t> company_bytes_max;
  Patch<std::int64_t> company_runs_max;
  Patch<std::int64_t> payload_bytes_max;
  Patch<std::int64_t> agent_wakeups_per_minute;
  Patch<std::int64_t> agent_home_bytes_max;
  Patch<std::int64_t> agent_home_files_max;

  Patch<std::int64_t> sandbox_memory_mb_max;
  Patch<std::int64_t> sandbox_disk_mb_max;
  Patch<std::int64_t> sandbox_pids_max;
  Patch<std::int64_t> sandbox_cpus_max;
  Patch<std::int64_t> company_memory_mb_max;
  Patch<std::int64_t> company_disk_mb_max;
  Patch<std::int64_t> company_pids_max;
  Patch<std::int64_t> company_sandboxes_max;
  Patch<std::int64_t> company_warm_sandboxes_max;
  Patch<std::int64_t> warm_sandboxes_max;
};
BOOST_DESCRIBE_STRUCT(UpdateSettings, (),
                      (strict_secrets, answer_retention_hours, enable_sandbox_duplex_bridge,
                       run_retention_days, log_retention_days, event_retention_days,
                       company_bytes_max, company_runs_max, payload_bytes_max,
                       agent_wakeups_per_minute, agent_home_bytes_max, agent_home_files_max,
                       sandbox_memory_mb_max, sandbox_disk_mb_max, sandbox_pids_max,
                       sandbox_cpus_max, company_memory_mb_max, company_disk_mb_max,
                       company_pids_max, company_sandboxes_max, company_warm_sandboxes_max,
                       warm_sandboxes_max))

Result<InstanceSettings> read_settings(store::Session& session);
// Stores the initial settings, with retention and quotas, in a home that has none.
Result<> save_first_settings(store::Session& session, Time now);

class Settings {
 public:
  explicit Settings(Services& services) : services_(services) {}

  Task<core::Stored<InstanceSettings>> get(core::Call call);
  Task<core::Stored<InstanceSettings>> update(core::Call call, UpdateSettings change);

 private:
  Services& services_;
};

}  // namespace berth::engine
