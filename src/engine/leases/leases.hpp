#pragma once

#include "core/call.hpp"
#include "core/page.hpp"
#include "core/rows/environment.hpp"
#include "core/rows/lease.hpp"
#include "core/rows/node.hpp"
#include "core/rows/sandbox.hpp"
#include "engine/plugins/plugin_configs.hpp"
#include "engine/services.hpp"
#include "places/place.hpp"
#include "places/registry.hpp"
#include "store/places/leases.hpp"
#include "store/places/sandboxes.hpp"

namespace berth::engine {

using store::LeaseFilter;
using store::SandboxFilter;

class LeaseLifecycle;

// A lease as an operator sees it: what holds it, and what will happen to it next.
struct LeaseView : core::Lease {
  core::DriverKind driver = core::DriverKind::local;
  std::optional<core::NodeId> node_id = {};
  std::optional<core::SandboxId> sandbox_id = {};
  std::int64_t attempts = 0;
  std::optional<Time> next_attempt_at = {};
  std::optional<Time> parked_at = {};
  std::string next_step = {};  // a sentence: what the sweeper will do, or what it waits for
  // The actual isolation of its sandbox, if any: {level, features, missing, remedy}.
  std::optional<bj::object> isolation = {};
  // What its place had used when it ended, if measured.
  std::optional<bj::object> usage = {};
  std::optional<core::NodeBrief> server = {};  // of node_id; not set in lists
};
BOOST_DESCRIBE_STRUCT(LeaseView, (core::Lease),
                      (driver, node_id, sandbox_id, attempts, next_attempt_at, parked_at, next_step,
                       isolation, usage, server))

// A sandbox as an operator sees it, including one kept for the next run without a lease.
struct SandboxView {
  core::SandboxId id;
  core::CompanyId company_id;
  std::optional<core::EnvironmentId> environment_id = {};
  std::optional<core::AgentId> agent_id = {};  // absent: serves runs without an agent
  std::optional<core::LeaseId> lease_id = {};  // the lease that holds it now
  std::optional<core::NodeId> node_id = {};
  std::string provider = {};
  std::optional<std::string> provider_lease_id = {};
  core::SandboxState status = core::SandboxState::creating;
  std::optional<std::string> failure_reason = {};
  std::int64_t attempts = 0;  // teardown attempts
  std::optional<Time> next_attempt_at = {};
  std::optional<Time> parked_at = {};
  std::optional<Time> expires_at = {};  // until when it is kept
  Time last_used_at = {};
  Time created_at = {};
  std::string next_step = {};  // a sentence
  std::optional<bj::object> isolation = {};
  bj::object metadata = {};
  std::optional<core::NodeBrief> server = {};  // of node_id; not set in lists
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

// How long a kept sandbox is withheld from runs.
struct VisitSandbox {
  std::optional<std::int64_t> ttl_seconds = {};
};
BOOST_DESCRIBE_STRUCT(VisitSandbox, (), (ttl_seconds))

// The sandbox of a lease whose acquire never got a response.
struct AdoptSandbox {
  std::string provider_lease_id;
};
BOOST_DESCRIBE_STRUCT(AdoptSandbox, (), (provider_lease_id))

// One more command in a held place.
struct ExecInLease {
  std::vector<std::string> argv;
  std::optional<std::string> cwd = {};  // absent: the place's working directory
  std::optional<std::map<std::string, std::string>> env = {};
  std::optional<std::string> stdin_text = {};
  std::optional<std::int64_t> timeout_ms = {};
};
BOOST_DESCRIBE_STRUCT(ExecInLease, (), (argv, cwd, env, stdin_text, timeout_ms))

struct ExecOutcome {
  places::Outcome outcome = places::Outcome::lost;
  std::optional<std::int64_t> exit_code = {};
  std::optional<std::string> signal = {};
  std::string stdout_text = {};  // the first MiB
  std::string stderr_text = {};
  bool is_truncated = false;    // the output is incomplete
  std::int64_t bytes_lost = 0;  // bytes of output that a full disk refused
  bj::object usage = {};
};
BOOST_DESCRIBE_STRUCT(ExecOutcome, (),
                      (outcome, exit_code, signal, stdout_text, stderr_text, is_truncated,
                       bytes_lost, usage))

// Egress of a place: its policy, and its decisions from an offset on.
struct LeaseEgress {
  bj::object policy = {};
  std::vector<bj::object> entries = {};
  std::int64_t next_offset = 0;
};
BOOST_DESCRIBE_STRUCT(LeaseEgress, (), (policy, entries, next_offset))

// An unsaved environment: nothing of it is stored.
struct ProbeDraft {
  std::optional<std::string> name = {};
  std::optional<std::string> description = {};
  core::DriverKind driver;
  std::optional<bj::object> config = {};
  std::optional<bj::object> env_vars = {};
  std::optional<bj::object> metadata = {};
};
BOOST_DESCRIBE_STRUCT(ProbeDraft, (), (name, description, driver, config, env_vars, metadata))

using places::ProbeReport;

LeaseView view_of(core::LeaseRecord lease);

// The ports on which something in a place listens.
struct ListeningPorts {
  std::vector<std::int64_t> ports;
};
BOOST_DESCRIBE_STRUCT(ListeningPorts, (), (ports))

// The operators' use cases for leases. LeaseLifecycle creates and ends those of runs.
class Leases {
 public:
  Leases(Services& services, LeaseLifecycle& work, const PluginConfigs& plugins)
      : services_(services), work_(work), plugins_(plugins) {}

  Task<core::Listing<LeaseView>> list(core::Call call, core::CompanyId company, LeaseFilter filter,
                                      core::PageRequest page);
  Task<LeaseView> get(core::Call call, core::LeaseId id);
  // Ends a lease that no run uses any more (retained, parked or waiting for cleanup). For a live
  // one, its run is cancelled instead.
  Task<LeaseView> release(core::Call call, core::LeaseId id);
  // The same, and also destroys the sandbox.
  Task<LeaseView> destroy(core::Call call, core::LeaseId id);
  // Sandboxes, including those without a lease.
  Task<core::Listing<SandboxView>> sandboxes(core::Call call, core::CompanyId company,
                                             SandboxFilter filter, core::PageRequest page);
  Task<SandboxView> sandbox(core::Call call, core::SandboxId id);
  // Leases an idle sandbox for a user who inspects it or works in it by hand. The lease ends on
  // release or after a time, and the sandbox is idle again.
  Task<LeaseView> visit(core::Call call, core::SandboxId id, VisitSandbox wanted);
  // Destroys a sandbox that is idle, or whose teardown failed. `conflict` while a lease has it.
  Task<SandboxView> remove_sandbox(core::Call call, core::SandboxId id);
  // The resource usage of a held lease's place.
  Task<places::Usage> usage(core::Call call, core::LeaseId id);
  Task<ListeningPorts> listening(core::Call call, core::LeaseId id);
  // Runs a command in the place of an active or retained lease, and waits for its end. A command
  // that exceeds its timeout is ended.
  Task<ExecOutcome> exec(core::Call call, core::LeaseId id, ExecInLease wanted);
  // A connection to a port in the place of an active or retained lease.
  Task<Fd> dial(core::Call call, core::LeaseId id, std::uint16_t port);
  // What the place may reach outside itself, and the decisions from an offset on. Waits up to
  // `wait` if there are none.
  Task<LeaseEgress> egress(core::Call call, core::LeaseId id, std::uint64_t offset,
                           std::chrono::milliseconds wait);
  // Sets a new policy, effective now and also for the next server. It ends with the lease: a reused
  // sandbox starts again with its environment's policy.
  Task<LeaseEgress> set_egress(core::Call call, core::LeaseId id, core::LinuxEgress policy);
  // On an operator's order: names the sandbox of a parked lease whose acquire never got a response.
  // It is destroyed, and the lease ends.
  Task<LeaseView> adopt(core::Call call, core::LeaseId id, AdoptSandbox wanted);
  // On an operator's order: ends the row, whatever the provider still holds.
  Task<LeaseView> force_resolve(core::Call call, core::LeaseId id, ForceResolve wanted);

  // Acquires an ad-hoc lease, tests the place with it and releases it; each step with its duration.
  Task<ProbeReport> test(core::Call call, core::EnvironmentId id);
  Task<ProbeReport> probe_draft(core::Call call, core::CompanyId company, ProbeDraft draft);

 private:
  // A held lease, its place, and how that is addressed.
  struct Held {
    core::LeaseRecord lease;
    places::Place& place;
    places::PlaceRef facts;
  };
  // In a transaction: the lease of a kept sandbox, `acquiring`.
  Result<core::LeaseId> intend_visit(store::Session& session, const core::Call& call,
                                     const core::SandboxId& id, std::int64_t ttl_s);
  Task<LeaseView> enter(core::Call call, core::Stored<core::LeaseRecord> row, core::SandboxId id);
  Task<Held> look_into(const core::Call& call, const core::LeaseId& id);
  Task<> destroy_idle_sandbox(core::Call call, const LeaseView& ended);
  using LeaseRow = core::Stored<core::LeaseRecord>;
  // Waits a few seconds for another server to release the lease; returns the latest row.
  Task<LeaseRow> wait_for_its_server(LeaseRow row);
  Task<LeaseView> end(core::Call call, core::LeaseId id, std::string_view action,
                      core::LeaseEvent how);
  Task<> try_lease(const core::Environment& environment, ProbeReport& report);

  Services& services_;
  LeaseLifecycle& work_;
  const PluginConfigs& plugins_;
};

}  // namespace berth::engine
