#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/node.hpp"
#include "core/rows/sandbox.hpp"
#include "drivers/driver.hpp"
#include "drivers/registry.hpp"
#include "engine/plugins/plugin_configs.hpp"
#include "engine/services.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"

namespace berth::engine {

using store::LeaseFilter;
using store::SandboxFilter;

class LeaseLifecycle;

// A lease as an operator sees it: who holds it, and what will happen to it next.
struct LeaseView : core::Lease {
  core::DriverKind driver = core::DriverKind::local;
  std::optional<core::NodeId> node_id = {};
  std::optional<core::SandboxId> sandbox_id = {};
  std::int64_t attempts = 0;
  std::optional<Time> next_attempt_at = {};
  std::optional<Time> parked_at = {};
  std::string next_step = {};  // a sentence: what the sweeper will do, or what it waits for
  // How strong its sandbox really is: {level, features, missing, remedy}; where it has one.
  std::optional<bj::object> isolation = {};
  // What its place had used when it ended, where somebody counted.
  std::optional<bj::object> usage = {};
  std::optional<core::NodeBrief> server = {};  // the one of node_id; told of one lease, not of many
};
BOOST_DESCRIBE_STRUCT(LeaseView, (core::Lease),
                      (driver, node_id, sandbox_id, attempts, next_attempt_at, parked_at, next_step,
                       isolation, usage, server))

// A sandbox as an operator sees it, also one that no lease holds: it is kept for the next run.
struct SandboxView {
  core::SandboxId id;
  core::CompanyId company_id;
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::AgentId> agent_id = {};  // whose runs it serves; absent: those of no agent
  std::optional<core::LeaseId> lease_id = {};  // who holds it now
  std::optional<core::NodeId> node_id = {};
  std::string provider = {};
  std::optional<std::string> provider_lease_id = {};
  core::SandboxState status = core::SandboxState::creating;
  std::optional<std::string> failure_reason = {};
  std::int64_t attempts = 0;  // of teardown
  std::optional<Time> next_attempt_at = {};
  std::optional<Time> parked_at = {};
  std::optional<Time> expires_at = {};  // until when it is kept
  Time last_used_at = {};
  Time created_at = {};
  std::string next_step = {};  // a sentence
  std::optional<bj::object> isolation = {};
  bj::object metadata = {};
  std::optional<core::NodeBrief> server = {};  // the one of node_id; told of one, not of many
};
BOOST_DESCRIBE_STRUCT(SandboxView, (),
                      (id, company_id, environment_id, agent_id, lease_id, node_id, provider,
                       provider_lease_id, status, failure_reason, attempts, next_attempt_at,
                       parked_at, expires_at, last_used_at, created_at, next_step, isolation,
                       metadata, server))

struct ForceResolve {
  std::string reason;
};
BOOST_DESCRIBE_STRUCT(ForceResolve, (), (reason))

// How long a sandbox that is kept is taken out of the reach of runs.
struct VisitSandbox {
  std::optional<std::int64_t> ttl_seconds = {};
};
BOOST_DESCRIBE_STRUCT(VisitSandbox, (), (ttl_seconds))

// The sandbox that a lease waits for whose acquire was never answered.
struct AdoptSandbox {
  std::string provider_lease_id;
};
BOOST_DESCRIBE_STRUCT(AdoptSandbox, (), (provider_lease_id))

// One more command in a place that is held.
struct ExecInLease {
  std::vector<std::string> argv;
  std::optional<std::string> cwd = {};  // absent: where commands of the place work
  std::optional<std::map<std::string, std::string>> env = {};
  std::optional<std::string> stdin_text = {};
  std::optional<std::int64_t> timeout_ms = {};
};
BOOST_DESCRIBE_STRUCT(ExecInLease, (), (argv, cwd, env, stdin_text, timeout_ms))

struct ExecOutcome {
  drivers::Outcome outcome = drivers::Outcome::lost;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};
  std::string stdout_text = {};  // the first MiB
  std::string stderr_text = {};
  bool is_truncated = false;    // not all that it said is here
  std::int64_t bytes_lost = 0;  // of what it said: a full disk refused to keep them
  bj::object usage = {};
};
BOOST_DESCRIBE_STRUCT(ExecOutcome, (),
                      (outcome, exit_code, signal, stdout_text, stderr_text, is_truncated,
                       bytes_lost, usage))

// The way out of a place: its policy, and its decisions from an offset on.
struct LeaseEgress {
  bj::object policy = {};
  std::vector<bj::object> entries = {};
  std::int64_t next_offset = 0;
};
BOOST_DESCRIBE_STRUCT(LeaseEgress, (), (policy, entries, next_offset))

// An environment that is not saved: nothing of it is stored.
struct ProbeDraft {
  std::optional<std::string> name = {};
  std::optional<std::string> description = {};
  core::DriverKind driver;
  std::optional<bj::object> config = {};
  std::optional<bj::object> env_vars = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(ProbeDraft, (), (name, description, driver, config, env_vars, metadata))

using drivers::ProbeReport;

LeaseView view_of(core::LeaseRecord lease);

// On which ports of its own something in a place listens.
struct ListeningPorts {
  std::vector<std::int64_t> ports;
};
BOOST_DESCRIBE_STRUCT(ListeningPorts, (), (ports))

// What operators ask of leases. Those that runs hold are made and ended by LeaseLifecycle.
class Leases {
 public:
  Leases(Services& services, LeaseLifecycle& work, const PluginConfigs& plugins)
      : services_(services), work_(work), plugins_(plugins) {}

  Task<core::Listing<LeaseView>> list(core::Call call, core::CompanyId company, LeaseFilter filter,
                                      core::PageRequest page);
  Task<LeaseView> get(core::Call call, core::LeaseId id);
  // Ends a lease that no run works with any more (retained, parked or waiting for cleanup); the run
  // of a live one is cancelled instead.
  Task<LeaseView> release(core::Call call, core::LeaseId id);
  // The same, and the sandbox with it.
  Task<LeaseView> destroy(core::Call call, core::LeaseId id);
  // Sandboxes, also those that no lease holds.
  Task<core::Listing<SandboxView>> sandboxes(core::Call call, core::CompanyId company,
                                             SandboxFilter filter, core::PageRequest page);
  Task<SandboxView> sandbox(core::Call call, core::SandboxId id);
  // A lease of a sandbox that waits for a run, for who looks into it or works in it by hand. It
  // ends by a release, or after a time, and the sandbox waits again.
  Task<LeaseView> visit(core::Call call, core::SandboxId id, VisitSandbox wanted);
  // Destroys a sandbox that waits for a run, or whose end failed. `conflict` while a lease has it.
  Task<SandboxView> remove_sandbox(core::Call call, core::SandboxId id);
  // What the place of a lease that is held uses.
  Task<execution::Usage> usage(core::Call call, core::LeaseId id);
  Task<ListeningPorts> listening(core::Call call, core::LeaseId id);
  // Runs a command in the place of a lease that is active or retained, and waits for its end. A
  // command that takes longer than its timeout is ended.
  Task<ExecOutcome> exec(core::Call call, core::LeaseId id, ExecInLease wanted);
  // A connection to a port of the place of a lease that is active or retained.
  Task<Fd> dial(core::Call call, core::LeaseId id, std::uint16_t port);
  // What the place may reach beyond itself, and what was decided about it from an offset on. Waits
  // for so long when nothing was.
  Task<LeaseEgress> egress(core::Call call, core::LeaseId id, std::uint64_t offset,
                           std::chrono::milliseconds wait);
  // A new policy, from now on and also for the next server. It ends with the lease: a sandbox that
  // serves another one begins again with the policy of its environment.
  Task<LeaseEgress> set_egress(core::Call call, core::LeaseId id, core::LinuxEgress policy);
  // On the operator's word: the sandbox of a parked lease whose acquire was never answered is this
  // one. It is destroyed, and the lease ends.
  Task<LeaseView> adopt(core::Call call, core::LeaseId id, AdoptSandbox wanted);
  // On the operator's word: the row ends, whatever the provider still holds.
  Task<LeaseView> force_resolve(core::Call call, core::LeaseId id, ForceResolve wanted);

  // Takes an ad-hoc lease, tries the place with it and gives it back; each step with its time.
  Task<ProbeReport> test(core::Call call, core::EnvironmentId id);
  Task<ProbeReport> probe_draft(core::Call call, core::CompanyId company, ProbeDraft draft);

 private:
  // The place of a lease that is held, and who reaches it.
  struct HeldPlace {
    core::LeaseRecord lease;
    drivers::Driver* driver;
    drivers::PlaceRef facts;
  };
  // In a transaction: the lease of a kept sandbox, `acquiring`.
  Result<core::LeaseId> intend_visit(store::Session& session, const core::Call& call,
                                     const core::SandboxId& id, std::int64_t ttl_s);
  Task<LeaseView> enter(core::Call call, core::Stored<core::LeaseRecord> row, core::SandboxId id);
  Task<HeldPlace> look_into(const core::Call& call, const core::LeaseId& id);
  Task<> destroy_idle_sandbox(core::Call call, const LeaseView& ended);
  // A lease that another server has to give back, as it is some seconds later.
  using LeaseRow = core::Stored<core::LeaseRecord>;
  Task<LeaseRow> wait_for_its_server(LeaseRow row);
  Task<LeaseView> end(core::Call call, core::LeaseId id, std::string_view action,
                      core::LeaseEvent how);
  Task<> try_lease(const core::Environment& environment, ProbeReport& report);

  Services& services_;
  LeaseLifecycle& work_;
  const PluginConfigs& plugins_;
};

}  // namespace berth::engine
