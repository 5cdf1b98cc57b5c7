#pragma once

#include "core/access.hpp"
#include "core/output/run_summary.hpp"
#include "core/rows/agent_home.hpp"
#include "store/sql/mapping.hpp"

// Runs and their sealed inputs. run_events.hpp has what a run reports while it works.
namespace berth::store {

template <>
inline constexpr std::string_view table_of<core::Run> = "heartbeat_runs";

template <>
inline constexpr std::string_view fixed_columns_of<core::Run> =
    "company_id agent_id invocation_source trigger_detail retry_of_run_id name "
    "responsible_user_id created_at";

template <>
inline constexpr std::string_view table_of<core::ListedRun> = "heartbeat_runs";

// A run as inserted: with the size of its caller's input.
struct RunRow : core::Run {
  std::int64_t payload_bytes = 0;
};
BOOST_DESCRIBE_STRUCT(RunRow, (core::Run), (payload_bytes))

template <>
inline constexpr std::string_view table_of<RunRow> = "heartbeat_runs";

// The size of the caller's input that the row keeps: the payload and the command.
std::int64_t payload_bytes(const core::Run& run);

struct RunFilter {
  std::optional<core::RunState> status = {};
  std::optional<core::AgentId> agent_id = {};
  std::optional<core::EnvironmentId> environment_id = {};
  std::string name = {};
  std::string search = {};  // in the command, error, id or name, case-insensitive
};

// environment_not_found when the company, the agent or the environment no longer exists. The size
// of the run's sealed input counts as payload.
Result<> insert_run(Session& session, const core::Run& run, std::int64_t input_bytes = 0);
Result<Stored<core::Run>> find_run(Session& session, const core::Reach& reach,
                                   const core::RunId& id);
// Ordered by (created_at, id) descending.
Result<Page<core::Run>> list_runs(Session& session, const core::CompanyId& company,
                                  const RunFilter& filter, const PageRequest& page);
// The same rows, with only what a list shows.
Result<Page<core::ListedRun>> brief_runs(Session& session, const core::CompanyId& company,
                                         const RunFilter& filter, const PageRequest& page);
// The matching runs that began, ended or changed while active since then, newest first. A finished
// run never changes.
Result<std::vector<core::ListedRun>> runs_changed_since(Session& session,
                                                        const core::CompanyId& company,
                                                        const RunFilter& filter, Time since,
                                                        std::int64_t limit);

// Moves the run to the state that follows on this event, with its other fields as given. A run that
// becomes final gets its finished_at. `conflict` when the event is not allowed, or another writer
// was faster.
Result<Stored<core::Run>> move_run(Session& session, Stored<core::Run> run, core::RunEvent event,
                                   Time now);
// The same without a state change: phases, lease, node, command, ...
Result<Stored<core::Run>> update_run(Session& session, Stored<core::Run> run, Time now);
// Records that the run is to be cancelled; the first request counts. `conflict` when the run is
// final.
Result<Stored<core::Run>> request_cancel(Session& session, const core::Reach& reach,
                                         const core::RunId& id, Time now);

struct RunOutput {
  std::int64_t log_bytes = 0;
  std::int64_t last_output_seq = 0;
  Time last_output_at;
};
// One statement, because it is called often. `conflict` unless the node works on the run.
Result<> record_output(Session& session, const core::RunId& id, const core::NodeId& node,
                       const RunOutput& output, Time now);

// What the queue skips: agents and environments that are full or paused.
struct QueueSkip {
  std::vector<core::AgentId> agents = {};
  std::vector<core::EnvironmentId> environments = {};
  // Skips turns that continue a session in use by another run.
  std::vector<core::SessionKey> sessions = {};

  friend bool operator==(const QueueSkip&, const QueueSkip&) = default;
};
Result<bool> has_queued_run(Session& session);
// The runs that core::admit would place first if it skipped none: ordered by how many runs of their
// company are active or ahead of them, then by age. If all queued runs fit the limit: all of them
// by age.
Result<std::vector<Stored<core::Run>>> queued_runs(Session& session, const QueueSkip& skip,
                                                   std::int64_t limit);
// Moves the oldest of them to `starting` on this node. Concurrent claims get different runs.
Result<std::vector<Stored<core::Run>>> claim_runs(Session& session, const core::NodeId& node,
                                                  const QueueSkip& skip, std::int64_t limit,
                                                  Time now);
// 1 for the run that starts next among those that wait for the same agent, environment or server.
Result<std::int64_t> queue_position(Session& session, const core::Run& run,
                                    core::WaitReason reason);

// The sessions in use by active runs, except runs that start a session of their own.
Result<std::vector<core::SessionKey>> working_sessions(Session& session);

// How many of a company's runs are active (starting or running) for an agent in an environment.
struct WorkingRuns {
  core::CompanyId company_id;
  std::optional<core::AgentId> agent_id;
  std::optional<core::EnvironmentId> environment_id;
  std::int64_t count = 0;
};
Result<std::vector<WorkingRuns>> count_working_runs(Session& session);

// The runs that a node works on, oldest first.
Result<std::vector<Stored<core::Run>>> runs_of_node(Session& session, const core::NodeId& node,
                                                    std::int64_t limit);
// The runs that fenced nodes worked on.
Result<std::vector<Stored<core::Run>>> orphaned_runs(Session& session, std::int64_t limit);

// A core::RunInput as stored: sealed, because it may contain confidential data.
struct SealedInput {
  core::RunId run_id;
  std::string key_id;
  std::string material;
};
BOOST_DESCRIBE_STRUCT(SealedInput, (), (run_id, key_id, material))

template <>
inline constexpr std::string_view table_of<SealedInput> = "heartbeat_run_inputs";

Result<> insert_run_input(Session& session, const SealedInput& input);
Result<std::optional<SealedInput>> find_run_input(Session& session, const core::RunId& run);
// For a master key rotation, like versions_not_sealed_with and reseal_version in secrets.hpp.
Result<std::vector<SealedInput>> inputs_not_sealed_with(Session& session, const std::string& key_id,
                                                        const std::string& after,
                                                        std::int64_t limit);
Result<bool> reseal_run_input(Session& session, const SealedInput& resealed,
                              const std::string& old_key_id);

// Records that a run received a secret's value while it ran, so that the server that handles its
// output hides it. Identifies the value, but never holds it.
struct RunRedaction {
  core::RunId run_id;
  core::SecretId secret_id;
  std::int64_t secret_version = 0;
  std::optional<core::NodeId> hidden_by = {};  // the server that hides it

  friend bool operator==(const RunRedaction&, const RunRedaction&) = default;
};
BOOST_DESCRIBE_STRUCT(RunRedaction, (), (run_id, secret_id, secret_version, hidden_by))

template <>
inline constexpr std::string_view table_of<RunRedaction> = "heartbeat_run_redactions";

// Idempotent. run_not_found when the run no longer exists.
Result<> record_redaction(Session& session, const RunRedaction& redaction);
Result<std::vector<RunRedaction>> redactions_of_run(Session& session, const core::RunId& run);
// The redactions for this node's runs that it does not hide yet, because another server recorded
// them.
Result<std::vector<RunRedaction>> redactions_to_hide(Session& session, const core::NodeId& node,
                                                     std::int64_t limit);
Result<> mark_hidden(Session& session, const RunRedaction& redaction, const core::NodeId& node);

}  // namespace berth::store
